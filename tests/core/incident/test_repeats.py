"""How much of what a port that flaps all the time met would be met by chance."""

import random

from hypothesis import given
from hypothesis import strategies as st

from flapd.core.incident.repeats import repeats_of
from flapd.model.times import SECOND_NS

DAY_NS = 86_400 * SECOND_NS
WINDOW = (-SECOND_NS, 40 * SECOND_NS)


def ns(seconds: float) -> int:
    return round(seconds * SECOND_NS)


def test_few_flaps_repeat_nothing() -> None:
    assert repeats_of([ns(10), ns(5000)], [ns(10)], WINDOW, (0, DAY_NS)) is None
    assert repeats_of([ns(10), ns(5000), ns(9000)], [], WINDOW, (0, DAY_NS)) is None


def test_flaps_at_any_hour_that_hit_each_time_are_no_chance() -> None:
    chance = random.Random(1)
    flaps = sorted(ns(chance.uniform(0, 86_000)) for _ in range(12))
    found = repeats_of(flaps, [one + ns(0.1) for one in flaps], WINDOW, (0, DAY_NS))

    assert found is not None
    assert (found.flaps, found.met) == (12, 12)
    assert found.by_rate < 1e-9
    assert found.by_shift < 0.002


def test_of_flaps_at_a_fixed_period_a_shift_by_that_meets_as_many() -> None:
    """So it cannot tell them from anything else that comes so; the rate can."""
    flaps = [ns(7200 * number + 600) for number in range(12)]
    found = repeats_of(flaps, [one + ns(0.1) for one in flaps], WINDOW, (0, DAY_NS))

    assert found is not None
    assert found.by_rate < 1e-9
    assert abs(found.by_shift - 12 * 41 / 86_400) < 1e-6


def test_symptoms_all_the_time_meet_any_flap() -> None:
    symptoms = [ns(40 * number) for number in range(2160)]
    flaps = [ns(84_000 + 200 * number) for number in range(12)]
    found = repeats_of(flaps, symptoms, WINDOW, (0, DAY_NS))

    assert found is not None
    assert found.by_shift > 0.9


TIMES = st.lists(st.integers(0, 2000), max_size=12, unique=True).map(sorted)


@given(TIMES, TIMES)
def test_the_share_is_that_of_shifts_tried_one_by_one(
    flaps: list[int], symptoms: list[int]
) -> None:
    length, low, high = 2001, -2, 60
    window = (ns(low), ns(high))
    found = repeats_of([*map(ns, flaps)], [*map(ns, symptoms)], window, (0, ns(length)))
    if found is None:
        return
    apart: list[int] = []
    for flap in flaps:
        if not apart or flap - apart[-1] > high - low:
            apart.append(flap)
    as_many = sum(
        sum(
            any((symptom - flap - shift - low) % length <= high - low for symptom in symptoms)
            for flap in apart
        )
        >= found.met
        for shift in (number + 0.5 for number in range(length))
    )
    assert abs(found.by_shift - as_many / length) < 1e-6 or found.met == 0
    assert 0 < found.by_rate <= 1 + 1e-9
