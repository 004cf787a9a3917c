"""A counter moves as its rule says, and is odd as its scenario says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.fabric.counters import Burst, Cut, Fall, Oddity, Rule, Source, stops, wraps
from simulators.fabric.rates import Rate
from simulators.fabric.schedule import Flap, PortSchedule
from simulators.fabric.timeline import timeline_of

SECOND_NS = 1_000_000_000
NAME = "counters/link_downed"
DOWNS = stops(8, per_down=1)
# Goes down at 1, 3, 5, ... seconds.
FLAPS = tuple(Flap(2 * number + 1, 0.5) for number in range(10))


def values(
    *seconds: float,
    rule: Rule = DOWNS,
    first: int = 0,
    oddity: Oddity | None = None,
    cuts: tuple[Cut, ...] = (),
) -> list[int]:
    """What it shows at these moments."""
    timeline = timeline_of(PortSchedule(FLAPS), Rate(400), 0, 0)
    oddities = {} if oddity is None else {NAME: oddity}
    counter = Source(timeline, 1000, 0, cuts, {NAME: first}, oddities).counter(NAME, rule)
    return [counter.value(round(second * SECOND_NS)) for second in seconds]


def reset(second: float, prefix: str = "counters/", *, only_errors: bool = False) -> Cut:
    return Cut(round(second * SECOND_NS), (prefix,), only_errors)


def test_it_rises_with_each_down_from_its_first_value() -> None:
    assert values(0, 1, 2.9, 3, 30, first=5) == [5, 6, 6, 7, 15]


@given(first=st.integers(0, 300))
def test_what_stops_stays_at_its_highest_value(first: int) -> None:
    assert values(0, 30, first=first) == [min(255, first), min(255, first + 10)]


@given(first=st.integers(0, 2**32 - 1))
def test_what_wraps_begins_again_at_0(first: int) -> None:
    assert values(30, rule=wraps(32, per_down=7), first=first) == [(first + 70) % 2**32]


def test_it_moves_as_late_as_it_lags() -> None:
    assert values(1, 1.79, 1.8, 3.8, oddity=Oddity(lag_seconds=0.8)) == [0, 0, 1, 2]


def test_a_lying_counter_never_moves() -> None:
    assert values(0, 30, first=4, oddity=Oddity(moves=False)) == [4, 4]


def test_a_counter_can_count_downs_that_its_driver_does_not() -> None:
    assert values(1, 30, rule=stops(8), oddity=Oddity(per_down=2)) == [2, 20]


def test_a_counter_can_fall_and_goes_on_from_there_but_never_below_0() -> None:
    oddity = Oddity(falls=(Fall(4, 1), Fall(6, 100)))

    assert values(3.9, 4, 5, 5.9, 6, 7, oddity=oddity) == [2, 1, 2, 2, 0, 1]


def test_a_burst_rises_evenly_and_stays() -> None:
    oddity = Oddity(bursts=(Burst(2, 100, over_seconds=4),))

    assert values(2, 3, 6, 99, rule=stops(16), oddity=oddity) == [0, 25, 100, 100]


def test_a_reset_begins_again_at_0_also_after_it_had_stopped() -> None:
    assert values(5.9, 6, 7, 8.9, 9, first=254, cuts=(reset(6),)) == [255, 0, 1, 1, 2]


def test_a_reset_of_error_counters_leaves_traffic_alone() -> None:
    cuts = (reset(6, only_errors=True),)
    traffic = wraps(64, bytes_per_step=1)

    before, after = values(5.9, 6.1, rule=traffic, cuts=cuts)
    assert 0 < before < after
    assert values(6.1, cuts=cuts) == [0]


def test_a_reset_leaves_counters_of_other_places_alone() -> None:
    assert values(6.1, cuts=(reset(6, "hw_counters/"),)) == [3]


@pytest.mark.parametrize(
    ("rule", "oddity", "changes"),
    [
        (stops(8), None, "never"),
        (DOWNS, None, "edges"),
        (wraps(64, bytes_per_step=4), None, "flows"),
        (DOWNS, Oddity(lag_seconds=1), "flows"),
        (stops(8), Oddity(bursts=(Burst(1, 1),)), "flows"),
        (stops(8), Oddity(falls=(Fall(1, 1),)), "flows"),
    ],
)
def test_its_file_says_when_it_can_change(rule: Rule, oddity: Oddity | None, changes: str) -> None:
    timeline = timeline_of(PortSchedule(FLAPS), Rate(400), 0, 0)
    oddities = {} if oddity is None else {NAME: oddity}

    assert (
        Source(timeline, 1000, 0, oddities=oddities).counter(NAME, rule).file().changes == changes
    )
