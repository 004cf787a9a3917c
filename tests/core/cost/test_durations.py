"""How long outages lasted, as far as that is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.cost.durations import (
    MOST_OUTAGES,
    Length,
    durations,
    outage_length,
    quantile,
)
from flapd.core.cost.survival import Observed


def test_the_middle_of_its_interval_stands_for_an_outage() -> None:
    found = durations([Length(1.9, 2.1), Length(0.0, 1.1)])

    assert found.outages == (Observed(2.0), Observed(0.55))
    assert found.longest_seconds == 2.1


def test_the_time_from_up_until_usable_is_part_of_it() -> None:
    found = durations([Length(2, 2), Length(5, None)], usable_after_seconds=3)

    assert found.outages == (Observed(5.0), Observed(5.0, censored=True))
    assert found.longest_seconds == 5


@pytest.mark.parametrize(
    ("length", "vague"),
    [
        (Length(0, 1.5), False),
        (Length(0, 1.6), True),
        (Length(0, 28_800), True),
        (Length(10, 20), False),
        (Length(10, 21), True),
        (Length(0, None), True),
        (Length(12, None), False),
    ],
)
def test_what_is_not_known_to_within_a_factor_of_two_is_left_out(
    length: Length, vague: bool
) -> None:
    assert length.is_vague is vague
    assert durations([length, Length(1, 1)]).vague == vague


def test_one_that_went_on_counts_as_longer() -> None:
    found = durations([Length(30, None), Length(2, 2)])

    assert found.outages[0] == Observed(30, censored=True)
    assert (found.not_ended, found.longest_seconds) == (1, 2)


def test_the_newest_are_kept_and_the_others_counted() -> None:
    found = durations([Length(n, n) for n in range(1, MOST_OUTAGES + 4)])

    assert len(found.outages) == MOST_OUTAGES
    assert (found.outages[0], found.passed_over) == (Observed(1), 3)


def test_a_burst_lasts_from_its_first_down_to_its_last_up() -> None:
    assert outage_length((2.0, 2.2), 3, (5.0, 5.4)) == Length(5.0, 5.4)
    assert outage_length((2.0, 2.2), 1, (2.0, 2.2)) == Length(2.0, 2.2)
    assert outage_length((2.0, 2.2), 3, None) == Length(2.0, 2.2)
    assert outage_length(None, 1, None) == Length(0.0, None)


def test_quantiles_are_of_those_that_ended() -> None:
    outages = [*(Observed(float(n)) for n in range(1, 11)), Observed(99, censored=True)]

    assert [quantile(outages, share) for share in (0.1, 0.5, 0.9, 1)] == [1, 5, 9, 10]
    assert quantile([Observed(99, censored=True)], 0.5) is None


LENGTHS = st.builds(
    lambda low, width: Length(low, None if width is None else low + width),
    st.floats(0, 1e6),
    st.none() | st.floats(0, 1e6),
)


@given(st.lists(LENGTHS, max_size=30))
def test_every_outage_is_used_or_counted_as_left_out(lengths: list[Length]) -> None:
    found = durations(lengths)

    assert len(found.outages) + found.vague + found.passed_over == len(lengths)
    assert all(one.seconds <= found.longest_seconds for one in found.outages if not one.censored)
