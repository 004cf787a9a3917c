"""Jobs that die again and again: what is left of them, and how often to save."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.cost.overlap import hidden_chance
from flapd.core.cost.repeated import (
    Checkpoints,
    at_fixed_period,
    daly_interval,
    goodput_at_random,
    goodput_first_order,
    goodput_with_safe_restarts,
    young_interval,
)
from tests.core.cost.vectors import printed

# period, away, checkpoint interval and cost -> usable, checkpoints, lost, goodput, rework
LOCKED = """
3600 345.164771 300 5 3254.8352 10 600 0.8333 204.8352
3600 345.164771 600 10 3254.8352 5 600 0.8333 204.8352
3600 345.164771 1800 30 3254.8352 1 1800 0.5000 1424.8352
3600 345.164771 3600 30 3254.8352 0 3600 0 3254.8352
3600 915.1 1800 30 2684.9 1 1800 0.5000 854.9
3600 2115.1 1800 30 1484.9 0 3600 0 1484.9
"""

# mean, interval, cost, away -> exact, no failure in a restart, first order
RANDOM = """
3600 1800 30 345.164771 0.68570 0.68867 0.64340
3600 600 10 345.164771 0.82010 0.82365 0.80733
3600 300 5 345.164771 0.85636 0.86007 0.84832
3600 1800 30 915.1 0.58530 0.60174 0.48768
"""

# cost, mean -> Young, Daly
INTERVALS = """
30 3600 464.758 444.973
10 3600 268.328 261.703
5 3600 189.737 186.418
30 28440 1306.292 1286.369
10 28440 754.188 747.536
"""


def lines(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


@pytest.mark.parametrize("line", lines(LOCKED), ids=" ".join)
def test_at_a_fixed_period_the_rework_is_locked_to_the_flap(line: list[str]) -> None:
    period, away, interval, cost = map(float, line[:4])

    found = at_fixed_period(period, away, Checkpoints(interval, cost))

    values = (
        found.usable_seconds,
        found.checkpoints,
        found.lost_seconds,
        found.goodput,
        found.checkpoint_age_seconds,
    )
    assert [printed(value, like) for value, like in zip(values, line[4:], strict=True)] == line[4:]


def test_a_job_that_never_comes_back_before_the_next_death_does_nothing() -> None:
    found = at_fixed_period(1000, 2000, Checkpoints(300, 5))

    assert (found.goodput, found.usable_seconds, found.lost_seconds) == (0, 0, 1000)


@pytest.mark.parametrize("line", lines(RANDOM), ids=" ".join)
def test_deaths_at_random_leave_what_was_worked_out(line: list[str]) -> None:
    mean, interval, cost, away = map(float, line[:4])
    saves = Checkpoints(interval, cost)

    values = (
        goodput_at_random(mean, away, saves),
        goodput_with_safe_restarts(mean, away, saves),
        goodput_first_order(mean, away, saves),
    )

    assert [printed(value, like) for value, like in zip(values, line[4:], strict=True)] == line[4:]


@pytest.mark.parametrize(
    ("interval", "cost", "expected"),
    [(3600, 0, "0.979778"), (1800, 0, "0.988444"), (1800, 30, "0.972240")],
)
def test_the_first_order_form_is_that_of_a_cluster_of_nodes(
    interval: float, cost: float, expected: str
) -> None:
    failures_per_second = 128 * 6.5e-3 / 86400

    found = goodput_first_order(1 / failures_per_second, 300, Checkpoints(interval, cost))

    assert printed(found, expected) == expected


@pytest.mark.parametrize("line", lines(INTERVALS), ids=" ".join)
def test_the_best_checkpoint_interval_is_as_published(line: list[str]) -> None:
    cost, mean = map(float, line[:2])

    assert printed(young_interval(cost, mean), line[2]) == line[2]
    assert printed(daly_interval(cost, mean), line[3]) == line[3]


def test_where_saving_takes_longer_than_the_job_lives_the_interval_is_its_life() -> None:
    assert daly_interval(100, 50) == 50


@given(st.floats(100, 1e6), st.floats(0, 5000), st.floats(10, 5000), st.floats(0, 100))
def test_goodput_is_a_share_and_safe_restarts_never_worsen_it(
    mean: float, away: float, interval: float, cost: float
) -> None:
    saves = Checkpoints(interval, cost)

    exact = goodput_at_random(mean, away, saves)
    safe = goodput_with_safe_restarts(mean, away, saves)

    assert 0 <= exact <= safe * (1 + 1e-9)
    assert safe <= 1


@given(st.floats(100, 1e5), st.floats(0, 1e5), st.floats(10, 5000), st.floats(0, 100))
def test_a_period_is_used_saved_or_lost(
    period: float, away: float, interval: float, cost: float
) -> None:
    found = at_fixed_period(period, away, Checkpoints(interval, cost))

    assert 0 <= found.goodput <= 1
    assert found.lost_seconds + found.goodput * period == pytest.approx(period)
    assert 0 <= found.checkpoint_age_seconds <= interval + cost + 1e-6


@pytest.mark.parametrize(
    ("gap", "period", "down", "chance"),
    [(0.8, 5, 0.3, "0.10"), (3, 5, 0.3, "0.54"), (3, 5, 2, "0.20"), (3, 5, 10, "0")],
)
def test_a_flap_hides_in_the_idle_gap(gap: float, period: float, down: float, chance: str) -> None:
    assert printed(hidden_chance(gap, period, down), chance) == chance
