from pathlib import Path

import pytest

from flapd.model.port import Port
from flapd.sources.discovery import devices_of, ports_of_device
from flapd.sources.plan import plan_of, remembered
from flapd.sources.settings import PortsSettings
from simulators.fabric.plain import written
from simulators.fabric.spec import two_ports
from simulators.fabric.tree import build_tree, simulated_ports
from tests.trees import lay_out_capture


def found(
    sysfs: Path, include: tuple[str, ...] = ("*",), exclude: tuple[str, ...] = ()
) -> list[Port]:
    return [
        port
        for device in devices_of(sysfs)
        for port in ports_of_device(sysfs, device, PortsSettings(include, exclude))
    ]


@pytest.fixture
def rxe(tmp_path: Path) -> Path:
    lay_out_capture("sys-class-infiniband-rxe0.txt", tmp_path)
    lay_out_capture("sys-class-net-eth0-virtio.txt", tmp_path)
    return tmp_path


def test_a_soft_roce_port_of_a_real_kernel_is_counted_by_its_netdev(rxe: Path) -> None:
    (port,) = found(rxe)

    assert port == Port(
        key="5054:00ff:fe00:0001/1",
        device="rxe0",
        number=1,
        link_layer="Ethernet",
        guid="5054:00ff:fe00:0001",
        driver="rdma_rxe",
        netdev="eth0",
        witnesses=("net/carrier_down_count",),
    )


def test_its_plan_reads_the_counts_fast_and_leaves_the_cache_setting_alone(rxe: Path) -> None:
    (port,) = found(rxe)
    plan = plan_of(rxe, port)

    assert plan.tiers["fast"] == ("net/carrier_down_count", "net/carrier_up_count")
    assert "hw_counters/retry_exceeded_err" in plan.tiers["slow"]
    assert plan.tiers["rare"] == ("rate",)
    assert not any("lifespan" in name for name in plan.paths)
    assert {"state", "phys_state"} <= set(remembered(plan, "fast"))


@pytest.fixture
def mlx5(tmp_path: Path) -> Path:
    """Both ports of the simulated node, as plain files."""
    tree = build_tree(simulated_ports(two_ports(), 0, 0))
    with written(tree, tmp_path / "sys", ()):
        (tmp_path / "kept").mkdir()
        for path in (tmp_path / "sys").iterdir():
            path.rename(tmp_path / "kept" / path.name)
    return tmp_path / "kept"


def test_hardware_ports_are_known_by_guid_pci_address_and_driver(mlx5: Path) -> None:
    infiniband, ethernet = found(mlx5)

    assert (infiniband.name, infiniband.pci, infiniband.driver) == (
        "mlx5_0/1",
        "0000:3b:00.0",
        "mlx5_core",
    )
    assert (infiniband.netdev, infiniband.witness) == ("ib0", "counters/link_downed")
    assert (ethernet.netdev, ethernet.witness) == ("eth2", "net/carrier_down_count")
    assert ethernet.key == f"{ethernet.guid}/1"


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"include": ("mlx5_0/*",)}, ["mlx5_0/1"]),
        ({"exclude": ("mlx5_0/1",)}, ["mlx5_1/1"]),
        ({"exclude": ("0000:3b:*",)}, ["mlx5_1/1"]),
        ({"include": ("*3451",)}, ["mlx5_1/1"]),
        ({"include": ("nothing",)}, []),
        ({"include": ("mlx5_0/1",), "exclude": ("*",)}, []),
    ],
)
def test_ports_are_chosen_by_name_guid_or_pci_address(
    mlx5: Path, settings: dict[str, tuple[str, ...]], names: list[str]
) -> None:
    assert [port.name for port in found(mlx5, **settings)] == names


def test_a_node_without_rdma_has_no_ports(tmp_path: Path) -> None:
    assert found(tmp_path) == []


def test_a_device_without_guid_is_known_by_its_pci_address(mlx5: Path) -> None:
    guid = mlx5 / "class/infiniband/mlx5_0/node_guid"
    guid.write_text("0000:0000:0000:0000\n")

    assert found(mlx5)[0].key == "0000:3b:00.0/1"
    assert found(mlx5)[0].guid is None


def test_hostile_names_are_not_taken_for_guids_or_netdevs(rxe: Path) -> None:
    device = rxe / "class/infiniband/rxe0"
    (device / "node_guid").write_text("../../etc\x1b[2J\n")
    for gid in (device / "ports/1/gid_attrs/ndevs").iterdir():
        gid.write_text("../lo\n")
    (device / "parent").write_text("..\n")

    (port,) = found(rxe)

    assert (port.guid, port.netdev, port.witness) == (None, None, None)
    assert port.key == "rxe0/1"


def test_ports_of_one_function_are_told_apart_by_their_netdevs_number(mlx5: Path) -> None:
    device = mlx5 / "class/infiniband/mlx5_0"
    netdevs = (device / "device/net").resolve()
    for number, name in enumerate(("ib0", "ib1")):
        (netdevs / name).mkdir(exist_ok=True)
        (netdevs / name / "dev_port").write_text(f"{number}\n")
    second = device / "ports/2"
    (second / "counters").mkdir(parents=True)
    (second / "link_layer").write_text("InfiniBand\n")

    assert [(port.name, port.netdev) for port in found(mlx5, include=("mlx5_0/*",))] == [
        ("mlx5_0/1", "ib0"),
        ("mlx5_0/2", "ib1"),
    ]
