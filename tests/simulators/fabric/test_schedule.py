"""Flaps are in order, never overlap, and those drawn at random keep their bounds."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.fabric.rates import Rate
from simulators.fabric.schedule import Flap, PortSchedule, Span, random_flaps


def test_a_flap_before_the_port_is_active_again_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at 2\.2 s begins before"):
        PortSchedule((Flap(1, 1), Flap(2.2, 1)), subnet_seconds=0.3)


def test_a_logical_down_does_not_wait_for_the_subnet_manager_again() -> None:
    PortSchedule((Flap(1, 1, "logical"), Flap(2.2, 1)), subnet_seconds=0.3)


def test_a_port_that_was_never_up_has_no_flaps() -> None:
    with pytest.raises(ValueError, match="never_up"):
        PortSchedule((Flap(1, 1),), never_up=True)


def test_a_rate_changes_only_with_a_link() -> None:
    with pytest.raises(ValueError, match="rate_after"):
        Flap(1, 1, "logical", rate_after=Rate(100))


def test_a_span_ends_after_it_begins() -> None:
    with pytest.raises(ValueError, match="end_seconds"):
        Span(2, 2)


@pytest.mark.parametrize(
    ("rate", "line"),
    [
        (Rate(400), "400 Gb/sec (4X NDR)"),
        (Rate(100, lanes=1), "100 Gb/sec (1X NDR)"),
        (Rate(2.5, lanes=1), "2.5 Gb/sec (1X SDR)"),
        (Rate(56), "56 Gb/sec (4X FDR)"),
        (Rate(800), "800 Gb/sec (4X XDR)"),
    ],
)
def test_a_rate_is_written_as_the_kernel_writes_it(rate: Rate, line: str) -> None:
    assert rate.line == line


@pytest.mark.parametrize(("gbps", "lanes"), [(400, 3), (123, 4)])
def test_a_rate_that_no_link_has_is_refused(gbps: float, lanes: int) -> None:
    with pytest.raises(ValueError, match="link"):
        Rate(gbps, lanes)


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


def test_random_flaps_can_be_of_several_kinds() -> None:
    flaps = random_flaps(
        seed=3,
        count=40,
        shortest_seconds=0.1,
        longest_seconds=0.2,
        begin_seconds=0,
        gap_seconds=1,
        kinds=("physical", "logical"),
    )

    assert {flap.kind for flap in flaps} == {"physical", "logical"}
