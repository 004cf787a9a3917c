"""What can be counted of a port agrees with its schedule, at every moment."""

from itertools import pairwise
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from simulators.fabric.rates import Rate
from simulators.fabric.schedule import Flap, Kind, PortSchedule, Span
from simulators.fabric.timeline import Down, Timeline, all_down, timeline_of

ORIGIN_NS = 7_000_000_000_123
BEGIN_NS = ORIGIN_NS - 1_000_000_000
SECOND_NS = 1_000_000_000
NDR, SLOW = Rate(400), Rate(100)

KINDS: list[Kind] = ["physical", "logical", "admin"]
parts = st.tuples(
    st.integers(1, 10**7), st.integers(1, 10**7), st.sampled_from(KINDS), st.booleans()
)


@st.composite
def schedules(draw: st.DrawFn) -> PortSchedule:
    subnet_us = draw(st.integers(0, 10**6))
    at_us, flaps = 0, []
    for gap_us, down_us, kind, counted in draw(st.lists(parts, max_size=8)):
        at_us += gap_us
        flaps.append(Flap(at_us / 1e6, down_us / 1e6, kind, counted=counted))
        at_us += down_us + subnet_us
    pauses = st.tuples(st.integers(-(10**6), 10**7), st.integers(1, 10**7))
    off = tuple(
        Span(begin_us / 1e6, (begin_us + length_us) / 1e6)
        for begin_us, length_us in draw(st.lists(pauses, max_size=3))
    )
    return PortSchedule(tuple(flaps), subnet_us / 1e6, traffic_off=off)


class Known(NamedTuple):
    """A flap, computed the plain way."""

    down: int
    link: int
    active: int
    flap: Flap


def known_of(schedule: PortSchedule) -> list[Known]:
    subnet = round(schedule.subnet_seconds * 1e6)
    found = []
    for flap in schedule.flaps:
        down = round(flap.start_seconds * 1e6)
        up = down + round(flap.down_seconds * 1e6)
        logical = flap.kind == "logical"
        link, active = (down, up) if logical else (up, up + subnet)
        down_ns, link_ns, active_ns = (ORIGIN_NS + 1000 * us for us in (down, link, active))
        found.append(Known(down_ns, link_ns, active_ns, flap))
    return found


def moments(known: list[Known]) -> list[int]:
    edges = [edge for span in known for edge in span[:3]]
    return [BEGIN_NS, ORIGIN_NS, *(edge + by for edge in edges for by in (-1, 0, 1, 500))]


def phase_at(t: int, known: list[Known]) -> str:
    for span in known:
        if span.down <= t < span.active:
            if span.flap.kind == "logical":
                return "init"
            if t < span.link:
                return "admin" if span.flap.kind == "admin" else "down"
            return "init"
    return "active"


@given(schedules())
def test_phase_and_counts_agree_with_the_flaps_around_every_edge(schedule: PortSchedule) -> None:
    timeline = timeline_of(schedule, NDR, ORIGIN_NS, BEGIN_NS)
    known = known_of(schedule)

    for t in moments(known):
        begun = [span for span in known if span.down <= t]
        assert timeline.phase(t) == phase_at(t, known)
        assert timeline.leaves(t) == len(begun)
        assert timeline.returns(t) == sum(span.active <= t for span in known)
        assert timeline.downs(t) == sum(
            span.flap.counted and span.flap.kind != "logical" for span in begun
        )


@given(schedules())
def test_traffic_runs_in_the_time_that_is_in_no_outage_and_no_pause(
    schedule: PortSchedule,
) -> None:
    timeline = timeline_of(schedule, NDR, ORIGIN_NS, BEGIN_NS)
    known = known_of(schedule)
    pauses = [
        (
            ORIGIN_NS + 1000 * round(off.begin_seconds * 1e6),
            ORIGIN_NS + 1000 * round(off.end_seconds * 1e6),
        )
        for off in schedule.traffic_off
    ]
    idle = [(span.down, span.active) for span in known] + pauses
    edges = sorted({edge for span in idle for edge in span})

    for t in moments(known):
        cuts = [BEGIN_NS, *(edge for edge in edges if BEGIN_NS < edge < t), t]
        carried = sum(
            end - begin
            for begin, end in pairwise(cuts)
            if not any(since <= begin < until for since, until in idle)
        )
        assert timeline.traffic_ns(t) == carried


@given(schedules())
def test_outages_run_from_down_to_active(schedule: PortSchedule) -> None:
    timeline = timeline_of(schedule, NDR, ORIGIN_NS, BEGIN_NS)

    found = [(down.begin_ns, down.link_ns, down.active_ns) for down in timeline.outages]
    assert found == [span[:3] for span in known_of(schedule)]


def test_a_port_that_begins_later_has_carried_nothing_before() -> None:
    timeline = timeline_of(PortSchedule((Flap(1, 1),)), NDR, ORIGIN_NS, ORIGIN_NS)

    assert timeline.traffic_ns(ORIGIN_NS - 5) == 0
    assert timeline.traffic_ns(ORIGIN_NS + 3 * SECOND_NS) == 2 * SECOND_NS


def test_a_port_that_is_never_up_carries_nothing_and_never_changes() -> None:
    timeline = timeline_of(PortSchedule(never_up=True), NDR, ORIGIN_NS, BEGIN_NS)

    assert timeline.phase(ORIGIN_NS + 100 * SECOND_NS) == "down"
    assert timeline.traffic_ns(ORIGIN_NS + 100 * SECOND_NS) == 0
    assert timeline.edges_ns() == []


def test_an_armed_port_is_armed_until_it_is_active() -> None:
    schedule = PortSchedule((Flap(1, 1, "logical", state="ARMED"),))
    timeline = timeline_of(schedule, NDR, ORIGIN_NS, BEGIN_NS)

    at = [timeline.phase(ORIGIN_NS + t * SECOND_NS) for t in (0, 1, 2)]

    assert at == ["active", "armed", "active"]


def test_a_rate_holds_from_the_return_of_the_link_to_its_next_change() -> None:
    flaps = (Flap(1, 1, rate_after=SLOW), Flap(4, 1), Flap(7, 1, rate_after=NDR))
    timeline = timeline_of(PortSchedule(flaps), NDR, ORIGIN_NS, BEGIN_NS)

    at = [timeline.rate(ORIGIN_NS + t * SECOND_NS) for t in (0, 1, 2, 6, 7, 8)]

    assert at == [NDR, NDR, SLOW, SLOW, SLOW, NDR]


def test_a_bond_is_down_while_all_of_its_members_are() -> None:
    first = Timeline([Down(10, 20, 20), Down(40, 50, 50), Down(70, 90, 90)], NDR, 0)
    second = Timeline([Down(15, 30, 30), Down(72, 75, 75), Down(80, 100, 100)], NDR, 0)

    downs = [(down.begin_ns, down.active_ns) for down in all_down([first, second])]

    assert downs == [(15, 20), (72, 75), (80, 90)]
