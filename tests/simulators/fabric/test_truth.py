"""The truth tells every edge, count, fault and change, as a reader of the tree will find them."""

from msgspec.structs import replace

from simulators.fabric.changes import Gone, NetdevReplaced, Renamed
from simulators.fabric.counters import Oddity, Reset
from simulators.fabric.rates import Rate
from simulators.fabric.scenarios import all_drivers, bad_node
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import Spec, two_ports
from simulators.fabric.tree import simulated_ports
from simulators.fabric.truth import Truth, truth_of
from tests.simulators.fabric.trees import ORIGIN_NS, SECOND_NS, answer, tree_of

END_SECONDS = 1000.0


def truth(spec: Spec) -> Truth:
    return truth_of(spec, simulated_ports(spec, ORIGIN_NS, ORIGIN_NS), ORIGIN_NS, 0, "boot")


def with_first_port(spec: Spec, **changes: object) -> Spec:
    return replace(spec, ports=(replace(spec.ports[0], **changes), *spec.ports[1:]))


def seconds(monotonic_ns: int | None) -> float | None:
    return None if monotonic_ns is None else (monotonic_ns - ORIGIN_NS) / SECOND_NS


def test_each_outage_has_its_kind_and_the_moments_of_link_and_use() -> None:
    flaps = (
        Flap(1, 1, rate_after=Rate(200)),
        Flap(4, 1, "logical"),
        Flap(7, 1, "admin", counted=False),
    )
    told = truth(with_first_port(two_ports(flaps), subnet_seconds=0.5)).outages

    assert [
        (
            outage.kind,
            *map(
                seconds,
                (
                    outage.down_monotonic_ns,
                    outage.link_up_monotonic_ns,
                    outage.up_monotonic_ns,
                ),
            ),
            outage.counted,
            outage.rate_after,
        )
        for outage in told
    ] == [
        ("physical", 1, 2, 2.5, True, "200 Gb/sec (4X HDR)"),
        ("logical", 4, 4, 5, True, None),
        ("admin", 7, 8, 8.5, False, None),
    ]


def test_each_port_has_its_downs_by_kind() -> None:
    flaps = (Flap(1, 1), Flap(4, 1, "logical"), Flap(7, 1))

    port = truth(two_ports(flaps)).ports[0]

    assert port.downs == {"physical": 2, "logical": 1, "admin": 0}


def test_a_bond_tells_the_outages_of_its_members_and_its_own() -> None:
    told = truth(all_drivers())
    bond = next(port for port in told.ports if port.netdev == "bond0")
    outages = [outage for outage in told.outages if outage.port == "mlx5_bond_0/1"]

    assert {name: downs["physical"] for name, downs in bond.members.items()} == {
        "eth40": 1,
        "eth41": 1,
    }
    assert [(outage.member, seconds(outage.down_monotonic_ns)) for outage in outages] == [
        ("eth40", 2),
        (None, 2.5),
        ("eth41", 2.5),
    ]


def test_the_counts_are_what_can_be_read_before_and_after() -> None:
    for spec in (all_drivers(), bad_node()):
        tree = tree_of(spec)
        for port in truth(spec).ports:
            place = f"/class/infiniband/{port.device}/ports/{port.number}"
            for name, counted in port.counts.items():
                path = f"{place}/{name}"
                if name.startswith("net/"):
                    path = f"/class/net/{port.netdev}/{name.removeprefix('net/')}"
                shown = [answer(tree, path, second) for second in (-1, END_SECONDS)]
                if str in map(type, shown):
                    assert shown == [str(counted.first), str(counted.last)]


def test_the_counts_hold_what_stops_what_lies_and_what_is_reset() -> None:
    name = "counters/link_downed"
    flaps = (Flap(1, 1), Flap(4, 1), Flap(7, 1))
    stopping = with_first_port(two_ports(flaps), initial={name: 254})
    reset = with_first_port(two_ports(flaps), initial={name: 9}, resets=(Reset(6),))
    lying = with_first_port(two_ports(flaps), counters={name: Oddity(moves=False)})

    assert truth(stopping).ports[0].counts[name] == (254, 255)
    assert truth(reset).ports[0].counts[name] == (9, 1)
    assert name not in truth(lying).ports[0].counts
    assert truth(lying).ports[0].counts["net/carrier_down_count"] == (1, 4)


def test_an_outage_has_the_name_of_its_time_and_says_when_nobody_can_see_it() -> None:
    flaps = (Flap(1, 1), Flap(4, 1), Flap(7, 1))
    spec = replace(
        two_ports(flaps), changes=(Renamed("mlx5_0", 3, "mlx5_9"), Gone("mlx5_0", begin_seconds=6))
    )

    told = truth(spec).outages

    assert [(outage.port, outage.hidden) for outage in told] == [
        ("mlx5_0/1", False),
        ("mlx5_9/1", False),
        ("mlx5_0/1", True),
    ]


def test_faults_changes_and_resets_are_told_with_their_moments() -> None:
    spec = replace(
        bad_node(),
        changes=(
            Gone("mlx5_1", end_seconds=2),
            Renamed("mlx5_2", 3, "mlx5_9"),
            NetdevReplaced("mlx5_3", 4, "ib9"),
        ),
    )

    told = truth(spec)

    assert [(fault.kind, seconds(fault.begin_monotonic_ns)) for fault in told.faults[:2]] == [
        ("hang", 1),
        ("errno", 2),
    ]
    assert [
        (change.device, change.kind, seconds(change.begin_monotonic_ns), change.to)
        for change in told.changes
    ] == [
        ("mlx5_1", "gone", None, None),
        ("mlx5_2", "renamed", 3, "mlx5_9"),
        ("mlx5_3", "netdev_replaced", 4, "ib9"),
    ]
    assert seconds(told.changes[0].end_monotonic_ns) == 2
    assert [(reset.port, seconds(reset.at_monotonic_ns)) for reset in told.resets] == [
        ("mlx5_4/1", 6)
    ]
