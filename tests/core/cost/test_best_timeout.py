"""The best timeout for the outages that were seen."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.cost.best_timeout import Advice, best_timeout
from flapd.core.cost.case import Case
from flapd.core.cost.survival import Observed, weights
from tests.core.cost.vectors import printed

BASE = Case(gpus=1, down_seconds=0)
CHEAP_RESTART = replace(BASE, propagation_seconds=10, restart_seconds=45, checkpoint_age_seconds=5)
ADAPTIVE = replace(BASE, schedule="adaptive")

S1: dict[float, int] = {0.3: 70, 2: 20, 10: 8, 60: 2}
S2: dict[float, int] = {0.3: 50, 2: 30, 10: 15, 60: 5}
S3: dict[float, int] = {12: 1}
S4: dict[float, int] = {0.3: 90, 2: 10}

# name, outages, base -> seconds lost per flap for t = 17 to 23 with 7 retries; t, fewest r, loss
SCENARIOS: list[tuple[str, dict[float, int], Case, str, int, int, str]] = [
    ("S1", S1, BASE, "122.691 123.443 27.394 29.800 10.308 18.211 35.047", 21, 7, "10.308"),
    (
        "S1 adaptive",
        S1,
        ADAPTIVE,
        "122.662 123.028 26.212 26.668 27.581 3.419 3.387",
        23,
        2,
        "3.387",
    ),
    ("S1 cheap", S1, CHEAP_RESTART, "7.191 7.943 4.294 6.700 10.308 18.211 35.047", 19, 5, "4.208"),
    ("S2", S2, BASE, "244.684 245.704 64.835 67.627 12.455 19.757 36.078", 21, 7, "12.455"),
    ("S3", S3, BASE, "1218.858 1222.616 12.885 12.885 17.180 17.180 34.360", 19, 6, "12.885"),
    ("S4", S4, BASE, "0.698 1.181 2.147 4.295 8.590 17.180 34.360", 17, 4, "0.698"),
]


def seen(durations: dict[float, int]) -> list[Observed]:
    return [Observed(seconds) for seconds, count in durations.items() for _ in range(count)]


def expected_of(advice: Advice, timeout: int, retries: int = 7) -> float:
    (found,) = (
        one.expected_seconds
        for one in advice.policies
        if (one.ib_timeout, one.retry_cnt) == (timeout, retries)
    )
    return found


@pytest.mark.parametrize(
    ("durations", "base", "losses", "timeout", "fewest", "least"),
    [scenario[1:] for scenario in SCENARIOS],
    ids=[scenario[0] for scenario in SCENARIOS],
)
def test_each_timeout_costs_what_was_worked_out_and_the_best_is_found(
    durations: dict[float, int], base: Case, losses: str, timeout: int, fewest: int, least: str
) -> None:
    advice = best_timeout(base, seen(durations), resamples=20)

    found = [printed(expected_of(advice, t), "0.000") for t in range(17, 24)]
    assert found == losses.split()
    assert (advice.best.ib_timeout, advice.fewest_retries) == (timeout, fewest)
    assert printed(advice.best.expected_seconds, least) == least


def test_the_margin_to_the_longest_outage_is_told() -> None:
    advice = best_timeout(BASE, seen(S1), resamples=20)

    assert printed(advice.margin_seconds, "0.13") == "0.13"


def test_retries_that_cost_nothing_are_advised_as_a_margin() -> None:
    advice = best_timeout(BASE, seen(S3), resamples=20)

    assert (advice.best.retry_cnt, advice.fewest_retries) == (7, 6)


def test_the_same_outages_give_the_same_advice() -> None:
    assert best_timeout(BASE, seen(S1)) == best_timeout(BASE, seen(S1))


def test_confidence_is_full_where_all_outages_are_alike_and_less_where_few_decide() -> None:
    sure = best_timeout(BASE, seen(S3))
    unsure = best_timeout(BASE, seen({0.3: 18, 2: 1, 60: 1}))

    assert sure.confidence == 1
    assert sure.expected_low == sure.expected_high == sure.best.expected_seconds
    assert 0.3 < unsure.confidence < 0.9
    assert unsure.expected_low < unsure.best.expected_seconds < unsure.expected_high


def test_an_outage_not_seen_to_its_end_counts_as_a_longer_one() -> None:
    seen_whole = best_timeout(BASE, [Observed(3), Observed(3), Observed(50)], resamples=20)
    died_first = best_timeout(
        BASE, [Observed(3), Observed(3, censored=True), Observed(50)], resamples=20
    )

    # Its share went to the one of 50 s: 4 s under t=17, else the job's death.
    assert expected_of(seen_whole, 17) == pytest.approx((2 * 3.221225 + 1218.858096) / 3, abs=1e-6)
    assert expected_of(died_first, 17) == pytest.approx((3.221225 + 2 * 1218.858096) / 3, abs=1e-6)


def test_where_the_longest_was_not_seen_to_its_end_it_kills_under_every_policy() -> None:
    advice = best_timeout(BASE, [Observed(3), Observed(3, censored=True)], resamples=20)

    assert all(one.expected_seconds > 600 for one in advice.policies)


OUTAGES = st.lists(
    st.builds(Observed, st.sampled_from([0.3, 1.0, 5.0, 40.0, 200.0]), st.booleans()),
    min_size=1,
    max_size=12,
)


@given(OUTAGES)
@settings(max_examples=25)
def test_the_best_is_the_cheapest_of_all(outages: list[Observed]) -> None:
    advice = best_timeout(BASE, outages, resamples=20)

    least = min(one.expected_seconds for one in advice.policies)
    assert advice.best.expected_seconds == pytest.approx(least)
    assert 0 <= advice.confidence <= 1
    assert advice.fewest_retries <= advice.best.retry_cnt
    assert advice.expected_low <= advice.expected_high


@given(OUTAGES)
def test_the_weights_of_durations_add_up_to_one(outages: list[Observed]) -> None:
    distinct = sorted(set(outages))

    found = weights(distinct, [outages.count(one) for one in distinct])

    assert sum(found) == pytest.approx(1)
    assert all(one >= 0 for one in found)
    if not any(one.censored for one in outages):
        assert found[-1] == pytest.approx(0)
        assert found[:-1] == pytest.approx([outages.count(o) / len(outages) for o in distinct])


def test_a_censored_share_goes_to_the_longer_ones() -> None:
    ordered = [Observed(1), Observed(2, censored=True), Observed(3), Observed(4, censored=True)]

    assert weights(ordered, [1, 1, 1, 1]) == pytest.approx([0.25, 0, 0.375, 0, 0.375])
