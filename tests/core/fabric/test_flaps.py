"""Downs that belong together, what caused them, and what becomes of the port."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.engine import Engine
from flapd.core.fabric.damping import Damping, add_downs, ceiling, let_time_pass, penalty_at
from flapd.core.fabric.fabric import MOST_FORGOTTEN
from flapd.core.fabric.settings import FlapSettings
from flapd.model.duration import Duration
from flapd.model.event import After, Event, Outage, PortChange
from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_RATE,
    READ_STATE,
    READ_WITNESS,
    ClockPair,
    Expectations,
    Maintenance,
    Observation,
    PortSeen,
    PortsPresent,
    Repaired,
    Sample,
    Tick,
)
from flapd.model.port import Port

MS = 1_000_000
S = 1_000 * MS
HOUR = 3_600 * S
WITNESS, STATE, PHYSICAL = "counters/link_downed", "state", "phys_state"
DOWNS, UPS, CARRIER, FLAGS = (
    "net/carrier_down_count",
    "net/carrier_up_count",
    "net/carrier",
    "net/flags",
)
IB = Port("guid-a/1", "mlx5_0", 1, "InfiniBand", driver="mlx5_core", witnesses=(WITNESS,))
ROCE = Port("guid-b/1", "mlx5_1", 1, "Ethernet", netdev="eth2", witnesses=(DOWNS,))
BEGIN = 1_000 * S
"""Long after the boot: no grace."""

UP, DOWN, INIT = (4, 5), (1, 2), (2, 5)


class Node:
    """An engine, and samples as a sampler would tell them."""

    def __init__(self, *ports: Port, **settings: Duration) -> None:
        self.engine = Engine("node7", FlapSettings(**settings))  # type: ignore[arg-type]
        self.events: list[Event] = []
        self.step(ClockPair(BEGIN, BEGIN, "boot1"))
        for port in ports:
            self.step(PortSeen(port, BEGIN))

    def step(self, observation: Observation) -> list[Event]:
        events = self.engine.step(observation)
        self.events += events
        return events

    def ib(self, at: int, witness: int, state: tuple[int, int], reads: int = 0) -> list[Outage]:
        """Both read at `at` ms after the beginning."""
        at_ns = BEGIN + at * MS
        values = {WITNESS: witness, STATE: state[0], PHYSICAL: state[1]}
        reads |= READ_WITNESS | READ_STATE
        events = self.step(Sample(IB.key, at_ns, at_ns + 2 * MS, reads, values))
        return [event for event in events if isinstance(event, Outage)]

    def roce(self, at: int, downs: int, ups: int, flags: int = 0x1003) -> list[Outage]:
        at_ns = BEGIN + at * MS
        values = {DOWNS: downs, UPS: ups, CARRIER: int(ups > downs), FLAGS: flags}
        reads = READ_WITNESS | READ_CARRIER
        events = self.step(Sample(ROCE.key, at_ns, at_ns + 2 * MS, reads, values))
        return [event for event in events if isinstance(event, Outage)]

    def tick(self, at: int) -> list[Event]:
        return self.step(Tick(BEGIN + at * MS))

    @property
    def flaps(self) -> list[Outage]:
        """The last revision of each, oldest first."""
        last = {event.id: event for event in self.events if isinstance(event, Outage)}
        return list(last.values())

    @property
    def changes(self) -> list[tuple[str, str]]:
        found = [event for event in self.events if isinstance(event, PortChange)]
        return [(event.change, event.note) for event in found]

    def downs(self, port: int = 0) -> dict[str, int]:
        counted = self.engine.snapshot().ports[port].totals.downs
        return {cause: number for cause, number in counted.items() if number}


def steady(port: Port = IB, **settings: Duration) -> Node:
    """Up, its counter at 7."""
    node = Node(port, **settings)
    if port is IB:
        node.ib(0, 7, UP, READ_FIRST)
    else:
        node.roce(0, 7, 8)
    return node


def test_downs_less_than_two_seconds_apart_are_one_flap_with_a_count() -> None:
    node = steady()
    node.ib(100, 8, DOWN)
    node.ib(200, 8, UP)
    node.ib(2_100, 8, UP)
    node.ib(2_200, 9, DOWN)
    node.ib(2_300, 9, UP)

    (flap,) = node.flaps
    assert (flap.status, flap.count, flap.revision) == ("closed", 2, 4)
    assert flap.down.earliest_ns == BEGIN
    assert flap.up is not None
    assert flap.up.latest_ns == BEGIN + 2_302 * MS
    assert (flap.down_ns_min, flap.down_ns_max) == (0, 2 * 202 * MS)


def test_downs_further_apart_are_flaps_of_their_own() -> None:
    node = steady()
    node.ib(100, 8, DOWN)
    node.ib(200, 8, UP)
    node.ib(2_202, 8, UP)
    node.ib(2_300, 9, DOWN)

    assert [flap.count for flap in node.flaps] == [1, 1]


def test_a_burst_is_closed_a_minute_after_its_first_down_and_a_new_one_begins() -> None:
    node = steady()
    for second in range(1, 125):
        node.ib(1_000 * second, 7 + second, DOWN)
        node.ib(1_000 * second + 500, 7 + second, UP)

    assert [flap.count for flap in node.flaps] == [61, 61, 2]
    assert node.downs() == {"link": 124}


def test_a_flap_is_counted_once_no_more_downs_can_belong_to_it() -> None:
    node = steady()
    node.ib(100, 8, DOWN)
    node.ib(200, 8, UP)
    assert node.engine.snapshot().ports[0].totals.flaps == 0
    assert node.downs() == {"link": 1}

    node.ib(2_202, 8, UP)

    assert node.engine.snapshot().ports[0].totals.flaps == 1
    assert sum(node.engine.snapshot().down_histogram.counts) == 1


def test_a_logical_and_a_physical_down_in_one_flap_are_counted_by_their_own_causes() -> None:
    node = steady()
    node.ib(100, 8, DOWN)
    node.ib(200, 8, UP)
    node.ib(300, 8, INIT)
    node.ib(1_500, 8, INIT)
    node.ib(1_600, 8, UP)

    (flap,) = node.flaps
    assert (flap.count, flap.layer, flap.cause) == (2, "physical", "link")
    assert node.downs() == {"link": 1, "subnet": 1}


def test_an_interface_that_is_switched_off_is_admin_and_in_no_total() -> None:
    node = steady(ROCE)
    node.roce(100, 8, 8)
    node.roce(200, 8, 8, flags=0x1002)
    node.roce(5_000, 8, 8, flags=0x1002)
    node.roce(5_100, 8, 9)
    node.roce(9_000, 8, 9)

    (flap,) = node.flaps
    assert (flap.cause, flap.status, flap.settled) == ("admin", "closed", True)
    assert node.downs() == {"admin": 1}
    assert node.engine.snapshot().ports[0].totals.ended == 0
    assert node.engine.snapshot().ports[0].penalty == 0


def test_a_port_that_was_down_for_long_before_it_was_switched_off_was_the_links() -> None:
    node = steady(ROCE)
    node.roce(100, 8, 8)
    node.roce(1_200, 8, 8)

    assert node.downs() == {"link": 1}


def test_an_infiniband_port_that_is_disabled_is_admin() -> None:
    node = steady()
    (opened,) = node.ib(100, 8, (1, 3))

    assert opened.cause == "admin"


def test_a_roce_port_without_carrier_is_not_admin_for_its_physical_state() -> None:
    node = steady(ROCE)
    (opened,) = node.roce(100, 8, 8)
    at_ns = BEGIN + 200 * MS
    node.step(Sample(ROCE.key, at_ns, at_ns + MS, READ_STATE, {STATE: 1, PHYSICAL: 3}))

    assert node.flaps[-1].cause == opened.cause == "link"


def test_planned_work_is_its_own_cause_and_in_no_total() -> None:
    node = steady()
    node.step(Maintenance(None, BEGIN + 60 * S, "cable swap", BEGIN + MS))
    node.ib(100, 8, DOWN)
    node.ib(3_000, 8, UP)
    node.tick(60_001)
    node.ib(60_100, 8, UP)
    node.ib(60_200, 9, DOWN)

    assert [flap.cause for flap in node.flaps] == ["maintenance", "link"]
    assert ("maintenance", "cable swap") in node.changes
    assert ("maintenance", "it is over") in node.changes
    assert node.engine.snapshot().maintenance == ()
    assert node.engine.snapshot().ports[0].penalty < 1


def test_maintenance_of_one_port_leaves_the_others_alone() -> None:
    node = Node(IB, ROCE)
    node.step(Maintenance(ROCE.key, BEGIN + 60 * S, "", BEGIN))

    assert [view.maintenance for view in node.engine.snapshot().ports] == [False, True]
    node.step(Maintenance(ROCE.key, BEGIN, "", BEGIN + S))
    assert [view.maintenance for view in node.engine.snapshot().ports] == [False, False]


def test_a_device_that_is_gone_and_back_was_reloaded() -> None:
    node = steady()
    node.step(PortsPresent((), (), BEGIN + 500 * MS))
    assert [(flap.cause, flap.status) for flap in node.flaps] == [("removed", "open")]
    node.step(PortSeen(IB, BEGIN + 9 * S))
    node.ib(9_000, 0, DOWN, READ_FIRST)
    node.ib(9_100, 0, UP)

    (flap,) = node.flaps
    assert (flap.cause, flap.status, flap.settled) == ("driver_reload", "closed", True)
    assert flap.down.earliest_ns == BEGIN
    assert node.downs() == {}
    assert [change for change, _ in node.changes] == ["found", "gone", "back"]


def test_a_device_made_anew_under_its_name_was_reloaded() -> None:
    node = steady()
    at_ns = BEGIN + 500 * MS
    node.step(Sample(IB.key, at_ns, at_ns + MS, 0, {}, {STATE: "ENODEV"}))
    node.ib(700, 2, UP, READ_FIRST)

    (flap,) = node.flaps
    assert (flap.cause, flap.status) == ("driver_reload", "closed")
    assert node.downs() == {}


def test_a_port_that_is_gone_is_expected_back_however_long() -> None:
    node = steady()
    node.step(PortsPresent((), (), BEGIN + S))
    node.tick(300_000)
    assert node.flaps[0].kind == "drop"

    node.tick(100 * 86_400_000)

    assert node.engine.snapshot().ports_expected == 1
    assert node.flaps[0].status == "open"


def test_a_port_that_was_taken_out_for_good_is_forgotten() -> None:
    node = steady()
    node.step(PortsPresent((), (), BEGIN + S))
    node.step(Repaired(IB.key, "card removed", BEGIN + 2 * S))

    assert node.engine.snapshot().ports == ()
    assert node.engine.snapshot().ports_expected == 0
    assert node.flaps[0].status == "lost"
    assert node.changes[-1] == ("forgotten", "mlx5_0/1")


def test_what_is_kept_of_forgotten_ports_is_bounded() -> None:
    node = Node()
    for number in range(MOST_FORGOTTEN + 5):
        port = Port(f"guid-{number}/1", "mlx5_0", 1, "InfiniBand", witnesses=(WITNESS,))
        node.step(PortSeen(port, BEGIN + number * S))
        node.step(PortsPresent((), (), BEGIN + number * S + MS))

    record = node.engine._fabric.record
    assert len(record.ports) == 1
    assert len(record.forgotten) == MOST_FORGOTTEN
    assert "guid-0/1" not in record.forgotten


def test_another_card_in_its_place_is_expected_in_its_stead() -> None:
    node = steady()
    node.step(PortsPresent((), (), BEGIN + S))
    other = Port("guid-z/1", "mlx5_0", 1, "InfiniBand", witnesses=(WITNESS,))
    node.step(PortSeen(other, BEGIN + 60 * S))

    assert [view.port.key for view in node.engine.snapshot().ports] == ["guid-z/1"]
    assert node.flaps[0].status == "lost"


def test_a_boot_is_one_record_a_port_and_in_no_total() -> None:
    node = steady()
    node.ib(100, 7, UP)
    wall_ns = BEGIN + 120 * S
    node.step(ClockPair(10 * S, wall_ns, "boot2"))
    node.step(PortSeen(IB, 10 * S))
    sample = Sample(
        IB.key, 11 * S, 11 * S + MS, 7 | READ_FIRST, {WITNESS: 0, STATE: 4, PHYSICAL: 5}
    )
    node.step(sample)

    (flap,) = node.flaps
    assert (flap.cause, flap.status, flap.boot, flap.grace) == ("boot", "closed", "boot2", True)
    assert flap.down.earliest_unix_ns == BEGIN + 100 * MS
    assert flap.down.latest_unix_ns == wall_ns - 10 * S
    assert node.downs() == {}


def test_a_flap_soon_after_a_boot_is_recorded_and_does_not_count_against_the_port() -> None:
    node = Node()
    node.step(ClockPair(10 * S, BEGIN, "boot2"))
    node.step(PortSeen(IB, 10 * S))
    for at, witness, state in ((11, 7, UP), (12, 8, DOWN), (13, 8, UP), (299, 8, UP), (301, 9, UP)):
        values = {WITNESS: witness, STATE: state[0], PHYSICAL: state[1]}
        node.step(Sample(IB.key, at * S, at * S + MS, READ_WITNESS | READ_STATE, values))
        if at == 13:
            assert node.engine.snapshot().ports[0].grace
            assert node.engine.snapshot().ports[0].penalty == 0

    assert [flap.grace for flap in node.flaps] == [True, False]
    assert not node.engine.snapshot().ports[0].grace
    assert node.engine.snapshot().ports[0].penalty > 0


def test_a_port_that_was_never_up_is_listed_and_not_watched() -> None:
    node = Node(IB)
    node.ib(0, 7, DOWN, READ_FIRST)
    node.ib(100, 9, DOWN)

    (view,) = node.engine.snapshot().ports
    assert (view.watched, view.ever_up, view.up) == (False, False, False)
    assert node.flaps == []
    node.ib(200, 9, UP)
    assert node.engine.snapshot().ports[0].watched
    node.ib(300, 10, UP)
    assert [flap.count for flap in node.flaps] == [1]


def test_after_a_flap_it_is_told_whether_the_port_lost_speed() -> None:
    node = steady()
    record = node.engine.port(IB.key)
    assert record is not None

    def rated(at: int, witness: int, state: tuple[int, int], mbps: int) -> None:
        values = {WITNESS: witness, STATE: state[0], PHYSICAL: state[1], "rate_mbps": mbps}
        reads = READ_WITNESS | READ_STATE | READ_RATE
        node.step(Sample(IB.key, BEGIN + at * MS, BEGIN + (at + 2) * MS, reads, values))

    rated(50, 7, UP, 400_000)
    rated(100, 8, DOWN, 10_000)
    rated(200, 8, UP, 200_000)
    assert node.flaps[0].after == After(200_000, downgraded=True)
    (view,) = node.engine.snapshot().ports
    assert (view.downgraded, view.expected_rate_mbps) == (True, 400_000)
    node.step(Expectations(None, 200_000))
    assert node.engine.snapshot().ports[0].downgraded is False


def test_siblings_say_how_fast_a_port_should_be() -> None:
    ports = [
        Port(f"guid-{n}/1", f"mlx5_{n}", 1, "InfiniBand", driver="mlx5_core", witnesses=(WITNESS,))
        for n in range(3)
    ]
    node = Node(*ports)
    for port, mbps in zip(ports, (400_000, 400_000, 200_000), strict=True):
        values = {WITNESS: 0, STATE: 4, PHYSICAL: 5, "rate_mbps": mbps}
        reads = READ_WITNESS | READ_STATE | READ_RATE | READ_FIRST
        node.step(Sample(port.key, BEGIN, BEGIN + MS, reads, values))

    views = node.engine.snapshot().ports
    assert [view.expected_rate_mbps for view in views] == [400_000] * 3
    assert [view.downgraded for view in views] == [False, False, True]


def test_a_port_that_flaps_every_hour_is_flapping_from_its_third_on_until_it_is_calm() -> None:
    node = steady()
    for hour in range(3):
        at = hour * 3_600_000 + 1_000
        node.ib(at - 100, 7 + hour, UP)
        node.ib(at, 8 + hour, DOWN)
        node.ib(at + 100, 8 + hour, UP)
        node.tick(at + 1_000)
        assert node.engine.snapshot().ports[0].flapping == (hour == 2)

    assert node.engine.snapshot().ports[0].penalty == pytest.approx(2_684, abs=2)
    node.tick(2 * 3_600_000 + 11 * 3_600_000 + 60_000 * 3)
    assert not node.engine.snapshot().ports[0].flapping
    assert [change for change, _ in node.changes if change in {"flapping", "calm"}] == [
        "flapping",
        "calm",
    ]


def test_a_repair_clears_what_counts_against_a_port_and_is_remembered() -> None:
    node = steady()
    node.ib(100, 12, UP)
    assert node.engine.snapshot().ports[0].flapping
    node.step(Repaired(IB.key, "new cable", BEGIN + S))

    (view,) = node.engine.snapshot().ports
    assert (view.flapping, view.penalty) == (False, 0)
    assert view.repaired is not None
    assert view.repaired.note == "new cable"
    assert ("repaired", "new cable") in node.changes


def test_a_witness_that_saturates_is_told_once() -> None:
    node = Node(IB)
    node.ib(0, 254, UP, READ_FIRST)
    node.ib(100, 255, UP)
    node.ib(200, 255, DOWN)

    assert node.changes == [("found", "mlx5_0/1"), ("witness", "saturated")]
    assert node.engine.snapshot().ports[0].wants_state


def test_a_down_that_only_the_counter_tells_may_have_been_a_second_earlier() -> None:
    node = Node(IB)
    node.ib(0, 7, UP, READ_FIRST)
    (unseen,) = node.ib(5_000, 8, UP)
    assert unseen.down.earliest_ns == BEGIN - 1_000 * MS

    node.ib(8_000, 8, UP)
    (seen,) = node.ib(9_000, 9, DOWN)
    assert seen.down.earliest_ns == BEGIN + 8_000 * MS


def test_the_last_down_is_one_that_ended_and_had_no_cause_on_this_node() -> None:
    node = steady()
    node.ib(1_000, 8, DOWN)
    assert node.engine.snapshot().ports[0].last_down is None
    node.ib(1_100, 8, UP)
    node.ib(20_000, 8, (1, 3))

    (view,) = node.engine.snapshot().ports
    assert view.last_down is not None
    assert view.last_down.latest_ns == BEGIN + 1_002 * MS
    assert view.down_since is not None


def test_a_late_sample_narrows_what_is_known_and_tells_nothing_else() -> None:
    node = steady(ROCE)
    node.roce(1_000, 8, 8)
    bounds_ns = []
    for at, downs in ((400, 7), (600, 8)):
        late = Sample(ROCE.key, BEGIN + at * MS, BEGIN + (at + 2) * MS, 1, {DOWNS: downs})
        (narrowed,) = node.step(late)
        assert isinstance(narrowed, Outage)
        bounds_ns.append((narrowed.down.earliest_ns - BEGIN, narrowed.down.latest_ns - BEGIN))

    assert bounds_ns == [(400 * MS, 1_002 * MS), (400 * MS, 602 * MS)]
    assert node.downs() == {}


def test_a_late_sample_never_means_a_reset() -> None:
    node = steady()
    node.ib(1_000, 9, UP)
    node.step(Sample(IB.key, BEGIN + 400 * MS, BEGIN + 402 * MS, READ_WITNESS, {WITNESS: 7}))
    node.ib(1_100, 9, UP)

    assert node.engine.snapshot().ports[0].witness_resets == 0
    assert node.downs() == {"link": 2}


def test_what_happened_unwatched_is_a_flap_of_its_own() -> None:
    node = steady()
    node.ib(100, 8, DOWN)
    node.ib(200, 8, UP)
    node.ib(900, 9, UP, READ_FIRST)

    assert [(flap.seen, flap.count) for flap in node.flaps] == [
        ("observed", 1),
        ("while_away", 1),
    ]


SONIC = FlapSettings(half_life=Duration(15 * S), penalty=1000.0, suspect=1600.0, clear=1200.0)
"""The example in SONiC's documentation of link event damping."""


def test_the_score_follows_the_published_example() -> None:
    damping, half_life_ns = Damping(), 15 * S

    def down(second: int) -> float:
        add_downs(damping, 1, second * S, SONIC, second * S)
        return damping.penalty

    assert down(3) == pytest.approx(1000)
    assert penalty_at(damping, 7 * S, half_life_ns) == pytest.approx(831.24, abs=0.01)
    assert down(10) == pytest.approx(1723.63, abs=0.01)
    assert damping.flapping
    assert penalty_at(damping, 14 * S, half_life_ns) == pytest.approx(1432.75, abs=0.01)
    assert down(17) == pytest.approx(2247.28, abs=0.01)
    assert penalty_at(damping, 20 * S, half_life_ns) == pytest.approx(1956.37, abs=0.01)
    let_time_pass(damping, 30 * S, SONIC)
    assert damping.flapping
    let_time_pass(damping, 31 * S, SONIC)
    assert not damping.flapping
    assert ceiling(SONIC, 30 * S) == pytest.approx(4800)


@given(st.lists(st.tuples(st.integers(0, 48 * HOUR), st.integers(1, 300)), max_size=60))
def test_a_score_is_capped_and_clear_a_day_after_its_last_down(
    downs: list[tuple[int, int]],
) -> None:
    settings, damping, now = FlapSettings(), Damping(), 0
    for gap, count in downs:
        now += gap
        add_downs(damping, count, now, settings, now)
        assert 0 < damping.penalty <= 750 * 2**4
    let_time_pass(damping, now + 24 * HOUR + 1, settings)
    assert not damping.flapping


def test_a_netdev_replaced_while_its_link_is_down_makes_no_witness_a_liar() -> None:
    node = steady(ROCE)
    other = Port(ROCE.key, "mlx5_1", 1, "Ethernet", netdev="eth9", witnesses=(DOWNS,))
    node.step(PortSeen(other, BEGIN + 500 * MS))
    node.roce(600, 3, 3)
    for at in range(700, 4_000, 100):
        node.roce(at, 3, 3)
    node.roce(4_000, 3, 4)
    node.roce(9_000, 3, 4)

    (view,) = node.engine.snapshot().ports
    assert view.witness_status != "lying"
    assert node.downs() == {"link": 1}


def test_downs_of_planned_work_count_for_it_although_the_link_was_down_before() -> None:
    node = steady()
    node.ib(100, 8, DOWN)
    node.ib(1_500, 8, DOWN)
    node.step(Maintenance(None, BEGIN + 60 * S, "cable swap", BEGIN + 2 * S))
    for bounce in range(1, 7):
        node.ib(2_000 + 1_000 * bounce, 8 + bounce, DOWN)
    node.ib(9_000, 14, UP)

    assert node.downs() == {"link": 1, "maintenance": 6}
    assert not node.engine.snapshot().ports[0].flapping


def test_a_device_that_only_fails_was_not_reloaded() -> None:
    node = steady()
    for at, error in ((500, "ENODEV"), (600, "ENOENT")):
        at_ns = BEGIN + at * MS
        node.step(Sample(IB.key, at_ns, at_ns + MS, 0, {}, {STATE: error}))
    node.step(PortsPresent((), (), BEGIN + S))

    assert [(flap.cause, flap.status) for flap in node.flaps] == [("removed", "open")]


def test_carrier_counts_that_wrap_one_after_the_other_do_not_turn_up_and_down_round() -> None:
    node = Node(ROCE)
    top = (1 << 32) - 1
    for at, downs, ups in ((0, top - 1, top), (100, top, top)):
        values = {DOWNS: downs, UPS: ups, CARRIER: int(at == 0), FLAGS: 0x1003}
        at_ns = BEGIN + at * MS
        node.step(Sample(ROCE.key, at_ns, at_ns + MS, READ_WITNESS | READ_CARRIER, values))
    for at, downs, ups, up in ((200, top, 0, True), (300, 0, 0, False), (400, 0, 1, True)):
        at_ns = BEGIN + at * MS
        node.step(Sample(ROCE.key, at_ns, at_ns + MS, READ_WITNESS, {DOWNS: downs, UPS: ups}))
        assert node.engine.snapshot().ports[0].up is up


def test_a_port_is_as_last_known_until_discovery_tells() -> None:
    node = steady()
    engine = Engine.of_recording("node7", node.engine.checkpoint())
    assert engine.snapshot().ports[0].present
    engine.step(PortsPresent((), ("mlx5_0",), BEGIN + S))

    assert engine.snapshot().ports[0].present
    assert engine.snapshot().blind == {"mlx5_0"}


def test_an_interface_that_is_off_is_down_although_its_driver_keeps_the_carrier() -> None:
    node = steady(ROCE)
    for at, flags in ((100, 0x1002), (2_000, 0x1002), (2_100, 0x1003), (9_000, 0x1003)):
        node.roce(at, 7, 8, flags=flags)

    (flap,) = node.flaps
    assert (flap.cause, flap.status, flap.count) == ("admin", "closed", 1)
    assert node.engine.snapshot().ports[0].witness_status == "unproven"
    assert node.downs() == {"admin": 1}


def test_a_removal_is_one_outage_while_the_counts_of_its_netdev_are_still_read() -> None:
    node = steady(ROCE)
    at_ns = BEGIN + 500 * MS
    node.step(Sample(ROCE.key, at_ns, at_ns + MS, 0, {}, {STATE: "ENODEV"}))
    node.roce(600, 7, 8)
    node.roce(700, 7, 8)
    node.step(PortsPresent((), (), BEGIN + 2 * S))

    assert [(flap.cause, flap.status) for flap in node.flaps] == [("removed", "open")]
    node.step(PortSeen(ROCE, BEGIN + 3 * S))
    values = {STATE: 4, PHYSICAL: 5, DOWNS: 0, UPS: 1, CARRIER: 1, FLAGS: 0x1003}
    reads = READ_WITNESS | READ_CARRIER | READ_STATE | READ_FIRST
    node.step(Sample(ROCE.key, BEGIN + 3 * S, BEGIN + 3 * S + MS, reads, values))
    assert [(flap.cause, flap.status) for flap in node.flaps] == [("driver_reload", "closed")]


def test_a_device_that_goes_takes_its_carrier_away_first() -> None:
    node = steady(ROCE)
    node.roce(100, 8, 8)
    node.step(PortsPresent((), (), BEGIN + 600 * MS))

    assert [(flap.cause, flap.status) for flap in node.flaps] == [("removed", "open")]
    assert node.downs() == {"removed": 1}
