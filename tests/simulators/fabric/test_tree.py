"""The tree looks like /sys, and its contents follow the truth to the nanosecond."""

import errno
import posixpath
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.fabric.node import Directory, Symlink, Tree
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import PortSpec, Spec, two_ports
from simulators.fabric.tree import build_tree, simulated_ports
from simulators.fabric.truth import truth_of
from tests.simulators.fabric.trees import ORIGIN_NS, SECOND_NS, read, resolve, tree_of

IB = "/class/infiniband/mlx5_0"
ROCE = "/class/infiniband/mlx5_1"


def with_port(spec: Spec, index: int, **changes: object) -> Spec:
    ports = list(spec.ports)
    ports[index] = msgspec.structs.replace(ports[index], **changes)
    return Spec(tuple(ports))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (f"{IB}/node_guid", "b83f:d203:0012:3450"),
        (f"{IB}/node_type", "1: CA"),
        (f"{IB}/ports/1/state", "4: ACTIVE"),
        (f"{IB}/ports/1/phys_state", "5: LinkUp"),
        (f"{IB}/ports/1/rate", "400 Gb/sec (4X NDR)"),
        (f"{IB}/ports/1/link_layer", "InfiniBand"),
        (f"{IB}/ports/1/lid", "0x2"),
        (f"{IB}/ports/1/gids/0", "fe80:0000:0000:0000:b83f:d203:0012:3450"),
        (f"{IB}/ports/1/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000"),
        (f"{IB}/device/net/ib0/type", "32"),
        (f"{IB}/device/vendor", "0x15b3"),
        (f"{ROCE}/ports/1/lid", "0x0"),
        (f"{ROCE}/ports/1/link_layer", "Ethernet"),
        (f"{ROCE}/ports/1/gid_attrs/ndevs/0", "eth2"),
        (f"{ROCE}/ports/1/gid_attrs/types/1", "RoCE v2"),
        ("/class/net/eth2/carrier", "1"),
        ("/class/net/eth2/carrier_changes", "2"),
        ("/class/net/eth2/operstate", "up"),
        ("/class/net/eth2/type", "1"),
        ("/class/net/eth2/flags", "0x1003"),
        ("/class/net/eth2/speed", "400000"),
        ("/class/net/eth2/dev_port", "0"),
        ("/class/net/eth2/address", "b8:3f:d2:12:34:51"),
        ("/class/net/ib0/statistics/rx_bytes", "0"),
    ],
)
def test_files_show_what_the_kernel_shows(path: str, line: str) -> None:
    assert read(tree_of(two_ports()), path) == f"{line}\n"


@pytest.mark.parametrize(
    "path", [f"{ROCE}/ports/1/gid_attrs/ndevs/4", f"{IB}/ports/1/gid_attrs/ndevs/0"]
)
def test_gid_slots_without_netdev_refuse_the_read(path: str) -> None:
    with pytest.raises(OSError) as caught:
        read(tree_of(two_ports()), path)

    assert caught.value.errno == errno.EINVAL


@pytest.mark.parametrize(
    ("link", "target"),
    [
        (IB, "../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/infiniband/mlx5_0"),
        (f"{IB}/device", "../../../0000:3b:00.0"),
        (f"{IB}/device/driver", "../../../../bus/pci/drivers/mlx5_core"),
        ("/class/net/ib0/device", "../../../0000:3b:00.0"),
    ],
)
def test_links_are_relative_and_end_in_the_name_readers_look_for(link: str, target: str) -> None:
    tree = tree_of(two_ports())
    parent, name = posixpath.split(link)

    assert tree[f"{resolve(tree, parent)}/{name}"] == Symlink(target)


def test_every_link_leads_somewhere_and_every_directory_lists_what_is_in_it() -> None:
    tree = tree_of(two_ports())

    for path, node in tree.items():
        if isinstance(node, Symlink):
            assert isinstance(tree[resolve(tree, path)], Directory)
        if path != "/":
            parent = tree[posixpath.dirname(path)]
            assert isinstance(parent, Directory)
            assert posixpath.basename(path) in parent.names


def test_a_port_has_the_21_extended_counters() -> None:
    counters = tree_of(two_ports())[resolve(tree_of(two_ports()), f"{IB}/ports/1/counters")]

    assert isinstance(counters, Directory)
    assert len(counters.names) == 21


FLAPS = (Flap(1, 0.25), Flap(4, 2))


def test_contents_turn_at_the_very_nanosecond_the_truth_names() -> None:
    spec = with_port(two_ports(FLAPS, FLAPS), 0, subnet_seconds=0.5)
    ports = simulated_ports(spec, ORIGIN_NS, ORIGIN_NS)
    tree = build_tree(ports)
    outages = truth_of(spec, ports, ORIGIN_NS, 10, "boot").outages
    devices = {"mlx5_0/1": (IB, "ib0"), "mlx5_1/1": (ROCE, "eth2")}

    assert len(outages) == 4
    for outage in outages:
        device, netdev = devices[outage.port]
        state, carrier = f"{device}/ports/1/state", f"/class/net/{netdev}/carrier"
        for edge_ns, before, after in (
            (outage.down_monotonic_ns, True, False),
            (outage.up_monotonic_ns, False, True),
        ):
            for t_ns, up in ((edge_ns - 1, before), (edge_ns, after)):
                assert (read(tree, state, t_ns) == "4: ACTIVE\n") is up
                assert read(tree, carrier, t_ns) == f"{up:d}\n"


def shown(tree: Tree, paths: Sequence[str], t_ns: int) -> list[str]:
    return [read(tree, path, t_ns).strip() for path in paths]


def test_an_infiniband_link_trains_then_waits_for_the_subnet_manager() -> None:
    tree = tree_of(with_port(two_ports((Flap(1, 1),)), 0, subnet_seconds=0.5))
    files = (f"{IB}/ports/1/state", f"{IB}/ports/1/phys_state", "/class/net/ib0/operstate")

    at = [shown(tree, files, ORIGIN_NS + ms * 1_000_000) for ms in (999, 1000, 2000, 2500)]

    assert at == [
        ["4: ACTIVE", "5: LinkUp", "up"],
        ["1: DOWN", "2: Polling", "down"],
        ["2: INIT", "5: LinkUp", "down"],
        ["4: ACTIVE", "5: LinkUp", "up"],
    ]


def test_a_roce_port_is_disabled_while_down_and_counts_in_its_netdev() -> None:
    tree = tree_of(two_ports((), (Flap(1, 1),)))
    net = "/class/net/eth2"
    files = (
        f"{ROCE}/ports/1/phys_state",
        f"{ROCE}/ports/1/counters/link_downed",
        f"{net}/carrier_down_count",
        f"{net}/carrier_up_count",
        f"{net}/carrier_changes",
        f"{net}/speed",
    )

    at = [shown(tree, files, ORIGIN_NS + ms * 1_000_000) for ms in (0, 1000, 2000)]

    assert at == [
        ["5: LinkUp", "0", "1", "1", "2", "400000"],
        ["3: Disabled", "0", "2", "1", "3", "-1"],
        ["5: LinkUp", "0", "2", "2", "4", "400000"],
    ]


@given(first=st.integers(0, 300), flaps=st.integers(0, 20))
def test_link_downed_counts_every_down_and_stops_at_255(first: int, flaps: int) -> None:
    schedule = tuple(Flap(2 * number + 1, 0.001) for number in range(flaps))
    spec = with_port(two_ports(schedule), 0, initial={"counters/link_downed": first})

    value = read(tree_of(spec), f"{IB}/ports/1/counters/link_downed", ORIGIN_NS + 100 * SECOND_NS)

    assert int(value) == min(255, first + flaps)


def test_retransmissions_rise_with_each_down_and_wrap_at_32_bits() -> None:
    first = {"hw_counters/local_ack_timeout_err": 2**32 - 1}
    tree = tree_of(with_port(two_ports((Flap(1, 1),)), 0, initial=first))
    path = f"{IB}/ports/1/hw_counters/local_ack_timeout_err"

    before, after = (int(read(tree, path, ORIGIN_NS + s * SECOND_NS)) for s in (0, 1))

    assert before == 2**32 - 1
    assert 0 < after < 100


def test_traffic_runs_in_units_of_four_octets_and_stands_still_while_down() -> None:
    spec = with_port(two_ports((Flap(1, 1),)), 0, bytes_per_second=20_000_000_000)
    tree = tree_of(spec)
    path = f"{IB}/ports/1/counters/port_xmit_data"

    at = [
        int(read(tree, path, ORIGIN_NS + ms * 1_000_000)) for ms in (0, 500, 1000, 1500, 2000, 3000)
    ]

    assert at == [0, 2_500_000_000, 5_000_000_000, 5_000_000_000, 5_000_000_000, 10_000_000_000]


def test_truth_puts_both_clocks_side_by_side_in_order_of_time() -> None:
    spec = two_ports((Flap(3, 1),), (Flap(1, 0.5),))
    ports = simulated_ports(spec, ORIGIN_NS, ORIGIN_NS)

    truth = truth_of(spec, ports, ORIGIN_NS, 1_000, "a-boot")

    assert [outage.port for outage in truth.outages] == ["mlx5_1/1", "mlx5_0/1"]
    assert truth.origin_unix_ns == ORIGIN_NS + 1_000
    last = truth.outages[-1]
    assert last.up_unix_ns - last.up_monotonic_ns == 1_000
    assert [port.netdev for port in truth.ports] == ["ib0", "eth2"]


def test_ports_of_a_spec_are_told_apart_by_lid_and_ifindex() -> None:
    base = two_ports().ports[0]
    other = PortSpec(
        device="mlx5_9",
        link_layer="InfiniBand",
        netdev="ib9",
        guid="0000:0000:0000:0001",
        pci="0000:9b:00.0",
    )
    tree = tree_of(Spec((base, other)))

    assert read(tree, f"{IB}/ports/1/lid") != read(tree, "/class/infiniband/mlx5_9/ports/1/lid")
    assert read(tree, "/class/net/ib0/ifindex") != read(tree, "/class/net/ib9/ifindex")
