"""The loss as an interval, and the chance of each regime."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.cost.budget import Budget, budget_of, death_probability
from flapd.core.cost.estimate import Estimate, estimate
from flapd.core.cost.inputs import Inputs, checkpoint_age
from flapd.core.cost.price import price
from flapd.model.given import Given, exactly
from flapd.model.loss import REGIMES, Regime
from tests.core.cost.vectors import printed


def flap(down: float, **known: object) -> Inputs:
    """Of a job of 1,024 GPUs with NCCL's default timers, known from its environment."""
    inputs = Inputs(
        gpus=exactly(1024, "environment"),
        down_seconds=exactly(down, "measured"),
        ib_timeout=exactly(20, "environment"),
        retry_cnt=exactly(7, "environment"),
    )
    return replace(inputs, **known)


@pytest.mark.parametrize(
    ("down", "chance"),
    [
        (0.3, "0.001"),
        (30, "0.001"),
        (31, "0.020934"),
        (60, "0.450650"),
        (100, "0.783061"),
        (140, "0.99"),
    ],
)
def test_the_longer_the_path_is_missing_the_likelier_the_transport_gave_up(
    down: float, chance: str
) -> None:
    assert printed(death_probability(down, budget_of(flap(down))), chance) == chance


def test_the_budget_is_what_the_specification_promises() -> None:
    budget = budget_of(flap(2))

    assert budget.low == budget.nominal == pytest.approx(30.064771072)
    assert budget.high == pytest.approx(4 * 8 * 4.294967296)


def test_a_short_timer_may_be_lengthened_by_the_card() -> None:
    budget = budget_of(flap(2, ib_timeout=exactly(14, "environment")))

    assert budget.low == pytest.approx(0.469762048)
    assert budget.high == pytest.approx(4 * 8 * 0.536870912)
    assert budget.low < 3.702 < budget.high


def test_a_calibrated_budget_is_narrow() -> None:
    budget = budget_of(flap(2, budget_factor=exactly(1.1, "calibrated")))

    assert budget.low == pytest.approx(0.95 * 1.1 * 30.064771072)
    assert budget.high == pytest.approx(1.05 * 1.1 * 30.064771072 + 1.1 * 4.294967296)


def test_adaptive_timers_promise_no_lower_end() -> None:
    schedule = Given("fixed", "fixed", "adaptive", "default")
    budget = budget_of(flap(17, schedule=schedule))

    assert budget.low == 0
    assert 0.1 < death_probability(17, budget) < 0.2
    assert death_probability(budget.nominal, budget) == pytest.approx(0.25)
    assert death_probability(0, budget) == 0


def test_a_transport_that_never_gives_up_never_kills() -> None:
    found = estimate(flap(2, ib_timeout=exactly(0, "environment")))

    assert found.regimes == {"watchdog": 1.0}
    assert found.lost_seconds.likely == pytest.approx(1815.1)


def test_a_short_flap_is_absorbed_and_its_range_holds_the_timer_s_whole_spread() -> None:
    found = estimate(flap(2))

    assert found.regime == "absorbed"
    assert found.regimes["absorbed"] == pytest.approx(0.999)
    assert found.lost_seconds.low == 2
    assert found.lost_seconds.likely == pytest.approx(4.294967296)
    assert found.lost_seconds.high == pytest.approx(2 + 4 * 4.294967296)
    assert found.gpu_seconds.likely == pytest.approx(4398.0465)
    assert found.cost.likely == pytest.approx(3.0542, abs=1e-4)


def test_a_flap_between_the_budget_s_ends_may_have_gone_either_way() -> None:
    found = estimate(flap(60))

    assert found.regimes["transport_abort"] == pytest.approx(0.45065, abs=1e-5)
    assert found.regime == "absorbed"
    assert found.lost_seconds.high > 1245.16
    assert found.lost_seconds.low == 60


def test_what_was_seen_is_not_guessed() -> None:
    found = estimate(flap(60), observed="transport_abort")

    assert found.regimes == {"transport_abort": 1.0}
    assert found.lost_seconds.likely == pytest.approx(1245.164771)
    assert found.parts.rework == 900


def test_a_stall_seen_to_outlast_the_watchdog_is_at_least_as_long_as_the_path_was_gone() -> None:
    found = estimate(flap(61, watchdog_seconds=exactly(60.0, "default")), observed="absorbed")

    assert found.lost_seconds.low == found.lost_seconds.high == 61


def test_a_job_that_died_of_a_flap_was_given_up_before_the_path_was_back() -> None:
    schedule = exactly("adaptive", "measured")
    found = estimate(flap(17, schedule=schedule), observed="transport_abort")

    assert found.parts.detect <= 17.1


def test_a_longer_budget_than_the_watchdog_s_time_ends_in_the_watchdog() -> None:
    found = estimate(flap(4000, ib_timeout=exactly(25, "environment")))

    assert found.regime == "watchdog"
    assert found.parts.detect == pytest.approx(600.1)


def test_a_flap_in_a_gap_of_the_traffic_costs_nothing() -> None:
    found = estimate(flap(2), hidden_chance=0.6)

    assert found.regime == "hidden"
    assert found.regimes["absorbed"] == pytest.approx(0.4 * 0.999)
    assert (found.lost_seconds.low, found.lost_seconds.likely) == (0, 0)
    assert found.lost_seconds.high > 4


def test_an_unsure_slack_may_have_hidden_it() -> None:
    found = estimate(flap(2, slack_seconds=Given(2.0, 0.0, 2 * 4.294967296, "measured")))

    assert found.regimes["hidden"] == pytest.approx(0.999 / 2)


def test_what_the_job_may_have_hidden_lowers_the_range() -> None:
    found = estimate(flap(10, slack_seconds=Given(1.0, 0.0, 3.0, "measured")), observed="absorbed")

    assert found.lost_seconds.low == 10 - 3
    assert found.lost_seconds.high == pytest.approx(10 + 4 * 4.294967296)


def test_the_watchdog_s_time_may_have_begun_before_the_flap() -> None:
    found = estimate(
        flap(2, enqueued_seconds=Given(0.0, 0.0, 10.0, "default")), observed="watchdog"
    )

    assert found.lost_seconds.low == pytest.approx(600 - 10 + 1 + 150)
    assert found.lost_seconds.likely == pytest.approx(1815.1)


def test_a_watchdog_s_time_that_nobody_gave_is_assumed() -> None:
    known = {"propagation_seconds": 15.0, "restart_seconds": 300.0, "checkpoint_age_seconds": 900.0}
    given = {name: exactly(value, "measured") for name, value in known.items()}

    told = flap(2, watchdog_seconds=exactly(600.0, "log"), **given)

    assert estimate(told, observed="watchdog").assumed_share == 0
    assert estimate(flap(2, **given), observed="watchdog").assumed_share == pytest.approx(
        600.1 / 1815.1
    )


def test_how_much_is_assumed_is_told() -> None:
    measured = estimate(flap(2))
    default_timer = estimate(
        Inputs(gpus=exactly(8, "environment"), down_seconds=exactly(2.0, "measured"))
    )
    died = estimate(flap(60), observed="transport_abort")

    assert measured.assumed_share == 0
    assert default_timer.assumed_share == pytest.approx(1 - 2 / 4.294967296)
    assert died.assumed_share == pytest.approx(1215 / 1245.164771)
    assert estimate(flap(2, gpus=exactly(8, "default"))).assumed_share == 1


def test_a_checkpoint_s_age_is_anything_up_to_the_interval() -> None:
    age = checkpoint_age(exactly(600.0, "configuration"))

    assert (age.low, age.value, age.high, age.source) == (0, 300, 600, "configuration")


def interval(lowest: float, highest: float) -> st.SearchStrategy[Given[float]]:
    ends = st.lists(st.floats(lowest, highest), min_size=3, max_size=3).map(sorted)
    return ends.map(lambda three: Given(three[1], three[0], three[2], "measured"))


def whole(lowest: int, highest: int) -> st.SearchStrategy[Given[int]]:
    ends = st.lists(st.integers(lowest, highest), min_size=3, max_size=3).map(sorted)
    return ends.map(lambda three: Given(three[1], three[0], three[2], "environment"))


INPUTS = st.builds(
    Inputs,
    gpus=whole(1, 20_000),
    down_seconds=interval(0, 1000),
    usable_after_seconds=interval(0, 10),
    ib_timeout=whole(1, 31),
    retry_cnt=whole(0, 7),
    timer_floor=st.sampled_from([exactly(0, "default"), exactly(17, "calibrated")]),
    budget_factor=st.sampled_from([exactly(1.0, "default"), exactly(1.2, "calibrated")]),
    schedule=st.sampled_from(
        [
            exactly("fixed", "measured"),
            exactly("adaptive", "measured"),
            Given("fixed", "fixed", "adaptive", "default"),
        ]
    ),
    hang=st.booleans().map(lambda value: exactly(value, "default")),
    coordinated=st.booleans().map(lambda value: exactly(value, "version")),
    failover=st.booleans().map(lambda value: exactly(value, "environment")),
    failover_slowdown=interval(0, 1),
    slack_seconds=interval(0, 5),
    watchdog_seconds=interval(60, 1800),
    enqueued_seconds=interval(0, 30),
    poll_seconds=interval(0, 1),
    propagation_seconds=interval(0, 600),
    restart_seconds=interval(0, 5000),
    checkpoint_age_seconds=interval(0, 3600),
)


def is_ordered(found: Estimate) -> bool:
    return all(
        0 <= one.low <= one.likely * (1 + 1e-12) and one.likely <= one.high * (1 + 1e-12)
        for one in (found.lost_seconds, found.gpu_seconds, found.cost)
    )


@given(INPUTS, st.floats(0, 1))
def test_low_likely_and_high_are_in_order_and_the_chances_add_up(
    inputs: Inputs, hidden: float
) -> None:
    found = estimate(inputs, hidden_chance=hidden)

    assert is_ordered(found)
    assert sum(found.regimes.values()) == pytest.approx(1)
    assert found.regime in found.regimes
    assert 0 <= found.assumed_share <= 1
    assert found.parts.lost == pytest.approx(found.lost_seconds.likely)


@given(INPUTS, st.sampled_from(REGIMES))
def test_a_regime_that_was_seen_has_an_ordered_range_too(inputs: Inputs, regime: Regime) -> None:
    assert is_ordered(estimate(inputs, observed=regime))


@given(INPUTS, st.integers(0, 1000))
def test_more_gpus_are_never_estimated_cheaper(inputs: Inputs, more: int) -> None:
    gpus = inputs.gpus
    grown = Given(gpus.value + more, gpus.low + more, gpus.high + more, gpus.source)

    few, many = estimate(inputs), estimate(replace(inputs, gpus=grown))

    assert many.gpu_seconds.low >= few.gpu_seconds.low
    assert many.gpu_seconds.likely >= few.gpu_seconds.likely
    assert many.gpu_seconds.high >= few.gpu_seconds.high


@given(INPUTS)
def test_what_the_nominal_timers_say_is_within_the_range_of_its_regime(inputs: Inputs) -> None:
    nominal = price(inputs.likely())
    found = estimate(inputs, observed=nominal.regime)

    if budget_of(inputs).low > 0 and nominal.regime != "hidden":
        assert found.lost_seconds.low <= nominal.parts.lost * (1 + 1e-9)
        assert nominal.parts.lost <= found.lost_seconds.high * (1 + 1e-9)


@given(st.floats(0, 2000), st.floats(0, 500), INPUTS)
def test_the_chance_of_death_never_falls_with_the_duration(
    seconds: float, more: float, inputs: Inputs
) -> None:
    budget: Budget = budget_of(inputs)

    shorter, longer = (death_probability(s, budget) for s in (seconds, seconds + more))

    assert 0 <= shorter <= longer <= 1
    assert not math.isnan(longer)
