"""What discovery tells when it looks again: every change is seen at its next look."""

import shutil
from pathlib import Path

import msgspec
import pytest

from flapd.model.port import Port
from flapd.sources.discovery import Discovery, devices_of
from flapd.sources.settings import PortsSettings
from tests.sources.shapes import (
    BNXT_RE,
    MLX4_IB,
    MLX5_BOND,
    NVLINK_LPF,
    lay_out_bond,
    lay_out_netdev,
)
from tests.trees import lay_out, lay_out_capture


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    BNXT_RE.lay_out(tmp_path)
    return tmp_path


@pytest.fixture
def discovery(sysfs: Path) -> Discovery:
    return Discovery(sysfs, PortsSettings())


def looked(discovery: Discovery, sysfs: Path) -> list[Port]:
    return [port for device in devices_of(sysfs) for port in discovery.ports_of(device)]


def gid_netdev(sysfs: Path, name: str) -> None:
    lay_out(sysfs / "class/infiniband/bnxt_re0/ports/1/gid_attrs/ndevs", {"0": f"{name}\n"})


def test_nothing_changes_where_nothing_changed(sysfs: Path, discovery: Discovery) -> None:
    assert looked(discovery, sysfs) == looked(discovery, sysfs)


def test_a_device_that_is_removed_has_no_ports(sysfs: Path, discovery: Discovery) -> None:
    looked(discovery, sysfs)
    shutil.rmtree(sysfs / "class/infiniband/bnxt_re0")

    assert looked(discovery, sysfs) == []
    assert list(discovery.ports_of("bnxt_re0")) == []


def test_a_renamed_netdev_goes_by_its_new_name(sysfs: Path, discovery: Discovery) -> None:
    looked(discovery, sysfs)
    (sysfs / "class/net/ens1np0").rename(sysfs / "class/net/fabric0")
    gid_netdev(sysfs, "fabric0")

    (port,) = looked(discovery, sysfs)

    assert (port.netdev, port.witness) == ("fabric0", "net/carrier_down_count")


def test_a_netdev_that_is_gone_counts_nothing(sysfs: Path, discovery: Discovery) -> None:
    looked(discovery, sysfs)
    (sysfs / "class/net/ens1np0").unlink()

    (port,) = looked(discovery, sysfs)

    assert port.witness is None


def test_another_card_under_the_same_name_is_another_port(
    sysfs: Path, discovery: Discovery
) -> None:
    (before,) = looked(discovery, sysfs)
    shutil.rmtree(sysfs / "class/infiniband/bnxt_re0")
    msgspec.structs.replace(
        BNXT_RE, guid="9e6b:00ff:fe99:9999", pci="0000:42:00.0", netdevs=()
    ).lay_out(sysfs)

    (after,) = looked(discovery, sysfs)

    assert after.key == "9e6b:00ff:fe99:9999/1"
    assert after.pci == "0000:42:00.0"
    assert before.key != after.key


def test_a_function_that_is_handed_to_a_guest_is_left_out_of_the_host(
    sysfs: Path, discovery: Discovery
) -> None:
    looked(discovery, sysfs)
    shutil.rmtree(sysfs / "class/infiniband/bnxt_re0")
    msgspec.structs.replace(BNXT_RE, pci="0000:41:00.3", is_virtual=True, netdevs=()).lay_out(sysfs)

    assert looked(discovery, sysfs) == []


@pytest.fixture
def bond(tmp_path: Path) -> Path:
    MLX5_BOND.lay_out(tmp_path)
    lay_out_netdev(tmp_path, "ens5f1np1", tmp_path / "devices/pci0000:00/0000:98:00.1", 0)
    return lay_out_bond(tmp_path, "bond0", ["ens5f0np0", "ens5f1np1"])


def test_members_of_a_bond_are_entries_of_their_own(tmp_path: Path, bond: Path) -> None:
    whole, *members = looked(Discovery(tmp_path, PortsSettings()), tmp_path)

    assert (whole.netdev, whole.members) == ("bond0", ("ens5f0np0", "ens5f1np1"))
    assert [port.key for port in members] == [
        "946d:ae03:0068:1000/1/ens5f0np0",
        "946d:ae03:0068:1000/1/ens5f1np1",
    ]
    assert [port.pci for port in members] == ["0000:98:00.0", "0000:98:00.1"]
    for port in members:
        assert (port.name, port.member, port.netdev) == ("mlx5_bond_0/1", port.netdev, port.member)
        assert (port.members, port.witnesses) == ((), ("net/carrier_down_count",))


def test_a_member_that_leaves_its_bond_is_gone_at_the_next_look(tmp_path: Path, bond: Path) -> None:
    discovery = Discovery(tmp_path, PortsSettings())
    looked(discovery, tmp_path)
    (bond / "bonding/slaves").write_text("ens5f1np1\n")

    assert [port.member for port in looked(discovery, tmp_path)] == [None, "ens5f1np1"]

    (bond / "bonding/slaves").write_text("\n")

    assert [port.member for port in looked(discovery, tmp_path)] == [None]


def test_hostile_names_of_members_are_left_out(tmp_path: Path, bond: Path) -> None:
    (bond / "bonding/slaves").write_text("../../etc .. ens5f0np0 ens5f0np0 averyveryverylongname\n")

    assert [port.member for port in looked(Discovery(tmp_path, PortsSettings()), tmp_path)] == [
        None,
        "ens5f0np0",
    ]


def test_leaving_out_a_bond_leaves_out_its_members(tmp_path: Path, bond: Path) -> None:
    discovery = Discovery(tmp_path, PortsSettings(exclude=("mlx5_bond_0/1",)))

    assert looked(discovery, tmp_path) == []


def test_a_netdev_without_gids_is_the_one_that_a_software_device_names(tmp_path: Path) -> None:
    lay_out_capture("sys-class-infiniband-rxe0.txt", tmp_path)
    lay_out_capture("sys-class-net-eth0-virtio.txt", tmp_path)
    shutil.rmtree(tmp_path / "class/infiniband/rxe0/ports/1/gid_attrs")

    (port,) = looked(Discovery(tmp_path, PortsSettings()), tmp_path)

    assert (port.netdev, port.witness) == ("eth0", "net/carrier_down_count")


def test_product_data_is_read_once_a_device(tmp_path: Path) -> None:
    NVLINK_LPF.lay_out(tmp_path)
    discovery = Discovery(tmp_path, PortsSettings())
    looked(discovery, tmp_path)
    (tmp_path / "class/infiniband/mlx5_4/device/vpd").unlink()

    assert looked(discovery, tmp_path) == []
    assert looked(Discovery(tmp_path, PortsSettings()), tmp_path) != []


def test_a_counter_that_appears_after_its_port_is_counted_by(tmp_path: Path) -> None:
    msgspec.structs.replace(MLX4_IB, counters=()).lay_out(tmp_path)
    discovery = Discovery(tmp_path, PortsSettings(include=("mlx4_0/1",)))
    (before,) = looked(discovery, tmp_path)
    lay_out(tmp_path / "class/infiniband/mlx4_0/ports/1/counters", {"link_downed": "0\n"})

    (after,) = looked(discovery, tmp_path)

    assert (before.witness, after.witness) == (None, "counters/link_downed")
