"""What can be counted of a port agrees with its flaps, at every moment."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.fabric.schedule import Flap, PortSchedule, Timeline, random_flaps

ORIGIN_NS = 7_000_000_000_123
BEGIN_NS = ORIGIN_NS - 1_000_000_000
SECOND_NS = 1_000_000_000

parts = st.tuples(st.integers(1, 10**7), st.integers(1, 10**7))


@st.composite
def schedules(draw: st.DrawFn) -> PortSchedule:
    subnet_us = draw(st.integers(0, 10**6))
    at_us, flaps = 0, []
    for gap_us, down_us in draw(st.lists(parts, max_size=8)):
        at_us += gap_us
        flaps.append(Flap(at_us / 1e6, down_us / 1e6))
        at_us += down_us + subnet_us
    return PortSchedule(tuple(flaps), subnet_us / 1e6)


def spans(schedule: PortSchedule) -> list[tuple[int, int, int]]:
    """Down, link up and ACTIVE of each flap, computed the plain way."""
    us = 1000
    return [
        (
            ORIGIN_NS + round(flap.start_seconds * 1e6) * us,
            ORIGIN_NS + round((flap.start_seconds + flap.down_seconds) * 1e6) * us,
            ORIGIN_NS
            + round((flap.start_seconds + flap.down_seconds + schedule.subnet_seconds) * 1e6) * us,
        )
        for flap in schedule.flaps
    ]


def moments(known: list[tuple[int, int, int]]) -> list[int]:
    edges = [edge for span in known for edge in span]
    return [BEGIN_NS, ORIGIN_NS, *(edge + by for edge in edges for by in (-1, 0, 1, 500))]


@given(schedules())
def test_phase_and_counts_agree_with_the_flaps_around_every_edge(schedule: PortSchedule) -> None:
    timeline = Timeline(schedule, ORIGIN_NS, BEGIN_NS)
    known = spans(schedule)

    for t in moments(known):
        down = any(d <= t < u for d, u, _ in known)
        waiting = any(u <= t < a for _, u, a in known)
        assert timeline.phase(t) == ("down" if down else "subnet" if waiting else "active")
        assert timeline.downs(t) == sum(d <= t for d, _, _ in known)
        assert timeline.actives(t) == sum(a <= t for _, _, a in known)


@given(schedules())
def test_active_time_is_the_time_not_spent_in_outages(schedule: PortSchedule) -> None:
    timeline = Timeline(schedule, ORIGIN_NS, BEGIN_NS)
    known = spans(schedule)

    for t in moments(known):
        lost = sum(max(0, min(t, a) - d) for d, _, a in known)
        assert timeline.active_ns(t) == t - BEGIN_NS - lost


@given(schedules())
def test_outages_run_from_down_to_active(schedule: PortSchedule) -> None:
    timeline = Timeline(schedule, ORIGIN_NS, BEGIN_NS)

    assert list(timeline.outages()) == [(d, a) for d, _, a in spans(schedule)]


def test_a_port_that_begins_later_has_carried_nothing_before() -> None:
    timeline = Timeline(PortSchedule((Flap(1, 1),)), ORIGIN_NS, ORIGIN_NS)

    assert timeline.active_ns(ORIGIN_NS - 5) == 0
    assert timeline.active_ns(ORIGIN_NS + 3 * SECOND_NS) == 2 * SECOND_NS


def test_a_flap_before_the_port_is_active_again_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at 2\.2 s begins before"):
        PortSchedule((Flap(1, 1), Flap(2.2, 1)), subnet_seconds=0.3)


@given(
    seed=st.integers(),
    count=st.integers(0, 30),
    shortest_ms=st.integers(1, 500),
    more_ms=st.integers(0, 5000),
    begin_ms=st.integers(0, 5000),
    gap_ms=st.integers(1, 5000),
)
def test_random_flaps_keep_their_bounds_and_never_overlap(
    seed: int, count: int, shortest_ms: int, more_ms: int, begin_ms: int, gap_ms: int
) -> None:
    def drawn() -> tuple[Flap, ...]:
        return random_flaps(
            seed=seed,
            count=count,
            shortest_seconds=shortest_ms / 1000,
            longest_seconds=(shortest_ms + more_ms) / 1000,
            begin_seconds=begin_ms / 1000,
            gap_seconds=gap_ms / 1000,
        )

    flaps = drawn()

    assert flaps == drawn()
    assert len(flaps) == count
    millisecond_ns = 1_000_000
    for flap in flaps:
        assert flap.start_ns >= begin_ms * millisecond_ns
        length_ns = flap.end_ns - flap.start_ns
        assert shortest_ms * millisecond_ns <= length_ns
        assert length_ns <= (shortest_ms + more_ms) * millisecond_ns
    for before, flap in pairwise(flaps):
        assert flap.start_ns - before.end_ns >= gap_ms * millisecond_ns
