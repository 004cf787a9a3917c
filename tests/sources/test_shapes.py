"""Every kind of device that there is: what discovery makes of it, and `flapd ports` shows."""

from pathlib import Path

import msgspec
import pytest

from flapd.core.fabric.view import PortView
from flapd.sources.discovery import Discovery, ports_of_device
from flapd.sources.settings import PortsSettings
from flapd.sources.survey import survey
from tests.sources.shapes import (
    BNXT_RE,
    EFA,
    ERDMA,
    HFI1,
    HNS,
    IRDMA,
    MANA,
    MLX4_IB,
    MLX4_ROCE,
    MLX5_BOND,
    MLX5_VF,
    NVLINK_LPF,
    QEDR,
    Device,
    lay_out_bond,
    lay_out_netdev,
)
from tests.trees import lay_out_capture

CARRIER_DOWNS = "net/carrier_down_count"
LINK_DOWNED = "counters/link_downed"


def shown(sysfs: Path, settings: PortsSettings | None = None) -> list[PortView]:
    return survey(sysfs, settings or PortsSettings())


def surveyed(device: Device, sysfs: Path) -> list[PortView]:
    device.lay_out(sysfs)
    return shown(sysfs)


@pytest.mark.parametrize(
    ("device", "netdev", "counter"),
    [
        (BNXT_RE, "ens1np0", "to_retransmits"),
        (IRDMA, "ens2", "tcpRetransSegs"),
        (MANA, "eth1", "requester_timeout"),
        (HNS, "enp125s0f0", "tx_err_pkt"),
    ],
    ids=lambda value: getattr(value, "driver", None),
)
def test_a_roce_port_is_counted_by_its_netdev(
    tmp_path: Path, device: Device, netdev: str, counter: str
) -> None:
    (view,) = surveyed(device, tmp_path)

    assert (view.port.netdev, view.port.witnesses) == (netdev, (CARRIER_DOWNS,))
    assert (view.up, view.readable, view.errors) == (True, True, {})
    assert view.values[f"hw_counters/{counter}"] == 1


def test_a_netdev_that_no_function_has_is_found_by_the_gids(tmp_path: Path) -> None:
    lay_out_netdev(tmp_path, "eth5")

    (view,) = surveyed(ERDMA, tmp_path)

    assert (view.port.netdev, view.port.witness) == ("eth5", CARRIER_DOWNS)


def test_efa_has_no_witness_and_is_known_by_its_address(tmp_path: Path) -> None:
    (view,) = surveyed(EFA, tmp_path)

    assert view.port.key == "0000:10:1b.0/1"
    assert (view.port.link_layer, view.port.witnesses) == ("Unknown", ())
    assert view.witness_status == "none"


def test_efa_with_a_netdev_is_counted_by_its_carrier(tmp_path: Path) -> None:
    (view,) = surveyed(msgspec.structs.replace(EFA, netdevs=("ens32",)), tmp_path)

    assert (view.port.netdev, view.port.witness) == ("ens32", CARRIER_DOWNS)


def test_omni_path_is_counted_by_what_its_driver_counts_in_32_bits(tmp_path: Path) -> None:
    (view,) = surveyed(HFI1, tmp_path)

    assert view.port.witnesses == ("hw_counters/SwLinkDown,32", LINK_DOWNED)
    assert view.port.netdev == "ibp24s0"
    assert view.up


def test_both_ports_of_a_function_are_told_apart(tmp_path: Path) -> None:
    views = surveyed(MLX4_IB, tmp_path)

    assert [(view.port.name, view.port.netdev) for view in views] == [
        ("mlx4_0/1", "ib0"),
        ("mlx4_0/2", "ib1"),
    ]
    assert {view.port.witnesses for view in views} == {(LINK_DOWNED,)}


def test_on_ethernet_mlx4_leaves_link_downed_at_0_and_the_carrier_counts(tmp_path: Path) -> None:
    views = surveyed(MLX4_ROCE, tmp_path)

    assert [view.port.netdev for view in views] == ["ens4", "ens4d1"]
    assert {view.port.witnesses for view in views} == {(CARRIER_DOWNS,)}


def test_a_bond_is_shown_with_each_of_its_members(tmp_path: Path) -> None:
    lay_out_bond(tmp_path, "bond0", ["ens5f0np0", "ens5f1np1"])
    lay_out_netdev(tmp_path, "ens5f1np1")

    views = surveyed(MLX5_BOND, tmp_path)

    assert [(view.port.netdev, view.port.member) for view in views] == [
        ("bond0", None),
        ("ens5f0np0", "ens5f0np0"),
        ("ens5f1np1", "ens5f1np1"),
    ]
    assert [view.up for view in views] == [True, True, True]
    assert "state" not in views[1].values


def test_a_virtual_function_is_watched_only_where_that_is_asked_for(tmp_path: Path) -> None:
    assert surveyed(MLX5_VF, tmp_path) == []

    (view,) = shown(tmp_path, PortsSettings(virtual_functions=True))

    assert view.port.pci == "0000:98:00.3"


def test_what_manages_nvlink_is_no_port_of_the_fabric(tmp_path: Path) -> None:
    assert surveyed(NVLINK_LPF, tmp_path) == []


@pytest.mark.parametrize("vpd", [None, "", "\x82\x1fNVIDIA ConnectX-7 HHHL adapter"])
def test_an_hca_like_it_is_one(tmp_path: Path, vpd: str | None) -> None:
    (view,) = surveyed(msgspec.structs.replace(NVLINK_LPF, vpd=vpd), tmp_path)

    assert view.port.name == "mlx5_4/1"


def test_product_data_that_cannot_be_read_leaves_nothing_out(tmp_path: Path) -> None:
    NVLINK_LPF.lay_out(tmp_path)
    vpd = tmp_path / "class/infiniband/mlx5_4/device/vpd"
    vpd.unlink()
    vpd.mkdir()

    assert [view.port.name for view in shown(tmp_path)] == ["mlx5_4/1"]


@pytest.mark.parametrize(("readable", "unknown"), [(True, {}), (False, {"mlx5_4": "EISDIR"})])
def test_a_device_whose_product_data_cannot_be_read_is_told(
    tmp_path: Path, readable: bool, unknown: dict[str, str]
) -> None:
    """To root alone the kernel shows them: of another user EACCES."""
    NVLINK_LPF.lay_out(tmp_path)
    if not readable:
        vpd = tmp_path / "class/infiniband/mlx5_4/device/vpd"
        vpd.unlink()
        vpd.mkdir()
    discovery = Discovery(tmp_path, PortsSettings())

    assert bool(list(discovery.ports_of("mlx5_4"))) == (not readable)
    assert discovery.unknown == unknown


def test_a_port_without_any_counter_is_shown_by_its_state(tmp_path: Path) -> None:
    (view,) = surveyed(msgspec.structs.replace(QEDR, netdevs=()), tmp_path)

    assert (view.up, view.witness_status) == (True, "none")
    assert view.values["rate_mbps"] == 25_000


def test_ports_that_give_no_netdev_by_gids_are_found_by_their_function(tmp_path: Path) -> None:
    (view,) = surveyed(QEDR, tmp_path)

    assert (view.port.netdev, view.port.witness) == ("ens6f0", CARRIER_DOWNS)


def test_software_iwarp_of_a_real_kernel_names_no_netdev(tmp_path: Path) -> None:
    lay_out_capture("sys-class-infiniband-siw0.txt", tmp_path)

    (view,) = shown(tmp_path)

    assert (view.port.driver, view.port.netdev, view.port.witness) == ("siw", None, None)
    assert view.up


def test_a_port_is_left_out_before_anything_of_it_is_read(tmp_path: Path) -> None:
    QEDR.lay_out(tmp_path)
    (tmp_path / "class/infiniband/qedr0/node_guid").unlink()
    (tmp_path / "class/infiniband/qedr0/node_guid").symlink_to("/proc/self/mem")

    assert list(ports_of_device(tmp_path, "qedr0", PortsSettings(exclude=("qedr0/*",)))) == []
    with pytest.raises(OSError, match="Input/output error"):
        list(ports_of_device(tmp_path, "qedr0", PortsSettings()))
