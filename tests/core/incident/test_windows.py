"""When a flap can have caused what was seen: costing vectors of attribution."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.cost.budget import Budget, budget_of, death_probability
from flapd.core.cost.chance import met_by_chance, shares_of_blame
from flapd.core.cost.inputs import Inputs
from flapd.core.incident.windows import Window, error_window, stall_window, timeout_window
from flapd.model.given import default, exactly

HOUR = 3600.0
OTHERS = 1 / (7.9 * HOUR)


def budget(ib_timeout: int = 20) -> Budget:
    return budget_of(
        Inputs(
            gpus=exactly(1024, "option"),
            down_seconds=default(0.0, 0.0, 0.0),
            ib_timeout=exactly(ib_timeout, "option"),
        )
    )


TICK = 4.294967296


def test_the_window_of_a_watchdog_is_that_of_the_collective_not_of_the_whole_timeout() -> None:
    window = timeout_window(600.097, budget())
    fired = 10000.0
    usual = max(window.steps, key=lambda step: step.density)

    assert f"{fired - usual.high:.6f}" == "9368.838229"
    assert f"{fired - usual.low:.3f}" == "9411.903"
    assert f"{usual.width:.6f}" == "43.064771"


@pytest.mark.parametrize(("down", "inside"), [(9402.9, True), (9500.0, False), (9300.0, False)])
def test_only_a_flap_in_that_window_is_a_likely_cause(down: float, inside: bool) -> None:
    window = timeout_window(600.097, budget())
    lag = 10000 - down

    assert (window.density(lag, lag) == pytest.approx(1 / 43.064771)) is inside


def test_a_flap_after_the_watchdog_fired_is_no_cause() -> None:
    assert timeout_window(600.097, budget()).density(-0.1, -0.1) == 0


@pytest.mark.parametrize(
    ("deadly", "expected"),
    [
        ([0.9], [0.998398, 0.001602]),
        ([0.45065], [0.996806, 0.003194]),
        ([0.001], [0.409181, 0.590819]),
        ([0.9, 0.001], [0.997292, 0.001108, 0.001600]),
        ([0.45065, 0.001], [0.994606, 0.002207, 0.003187]),
    ],
)
def test_blame_of_flaps_in_the_window_where_clocks_agree(
    deadly: list[float], expected: list[float]
) -> None:
    density = timeout_window(600.0, budget(), clock_seconds=0.0).density(610.0, 610.0)

    assert 1 / density == pytest.approx(41.064771)
    found = shares_of_blame([one * density for one in deadly], OTHERS)
    assert [round(one, 6) for one in found] == expected


@pytest.mark.parametrize(("clock", "chance"), [(0.0, "0.0113421"), (1.0, "0.0118912")])
def test_a_flap_an_hour_stands_in_the_window_by_accident(clock: float, chance: str) -> None:
    window = timeout_window(600.0, budget(), clock)
    density = window.density(610.0, 610.0)

    assert f"{met_by_chance(1 / HOUR, window.width_of(density)):.7f}" == chance


@pytest.mark.parametrize(
    ("seconds", "chance"),
    [
        (0.3, "0.001000"),
        (30, "0.001000"),
        (31, "0.020934"),
        (60, "0.450650"),
        (100, "0.783061"),
        (140, "0.990000"),
    ],
)
def test_a_flap_kills_by_its_length(seconds: float, chance: str) -> None:
    assert f"{death_probability(seconds, budget()):.6f}" == chance


def test_an_error_comes_most_likely_within_one_interval_after_the_budget() -> None:
    window = error_window(budget(), TICK)
    lag = 5030.9 - 5000.0

    assert f"{lag / budget().nominal:.4f}" == "1.0278"
    assert window.density(lag, lag) == pytest.approx(1 / TICK)
    assert window.density(100.0, 100.0) == pytest.approx(0.1 / TICK)
    assert window.density(26.0, 26.0) == 0
    assert window.density(145.0, 145.0) == 0


def test_an_error_of_a_card_without_a_lower_end_may_come_early() -> None:
    window = error_window(Budget(0.0, 30.064771, 137.438953, 17.18), TICK)

    assert window.density(17.0, 17.0) == pytest.approx(0.1 / TICK)


def test_a_transport_that_never_gives_up_brings_no_error() -> None:
    window = error_window(Budget(math.inf, math.inf, math.inf, math.inf), math.inf)

    assert window.density(30.0, 30.0) == 0


def test_a_stall_begins_with_the_flap_or_within_a_pause_of_it() -> None:
    window = stall_window(1.6, 0.1)

    assert window.density(0.1, 0.1) > 0
    assert window.density(-2.0, -2.0) > 0
    assert window.density(3.0, 3.0) == 0


@given(st.floats(1, 7200), st.floats(0.01, 1000), st.floats(-100, 10_000), st.floats(0, 100))
def test_a_lag_that_is_not_known_exactly_is_as_likely_as_those_it_may_be(
    ran: float, nominal: float, soonest: float, width: float
) -> None:
    window = timeout_window(ran, Budget(nominal, nominal, 4 * nominal, nominal))
    density = window.density(soonest, soonest + width)

    assert 0 <= density <= max(step.density for step in window.steps) + 1e-12
    assert window.width_of(density) <= window.high - window.low + 1e-9


def test_what_is_no_lag_of_any_step_has_no_width() -> None:
    assert Window(()).density(0.0, 1.0) == 0
    assert Window(()).width_of(0.0) == 0
