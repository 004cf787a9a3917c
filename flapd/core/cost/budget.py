"""Budget: how long the transport may retry, as an interval, and the chance that it gave up."""

import math

import msgspec
from msgspec.structs import replace

from flapd.core.cost.inputs import Inputs
from flapd.core.cost.timer import FIRST_ADAPTIVE_SECONDS, Timer

SPECIFIED_SPREAD = 4
"""A timer fires between 1 and 4 times its nominal time (InfiniBand specification)."""
MEASURED_FLOOR = 17
"""A ConnectX-5 treats every lower timeout as 17: 3.7 s measured where 0.47 s are nominal."""

DEATH_BEFORE_BUDGET = 0.001
SURVIVAL_PAST_BUDGET = 0.01
EARLY_DEATH = 0.25
"""Assumed: how often adaptive timers, whose budget has no lower end, give up before the nominal
one; a job that died after 17 s under nominal 30 s is on record."""


class Budget(msgspec.Struct, frozen=True):
    """Seconds from the down until the transport gives up; `low` = 0: nothing is promised."""

    low: float
    nominal: float
    high: float
    longest_tick: float
    """The longest that one retransmission timer can take."""


def budget_of(inputs: Inputs) -> Budget:
    """[r*T, 4*(r+1)*T] by the specification, or close around what was measured on this node."""
    timer = inputs.likely().timer
    if inputs.budget_factor.source == "calibrated":
        return _calibrated(inputs, timer)
    longest = _longest(inputs)
    return Budget(
        low=0.0 if _may_be_adaptive(inputs) else _shortest(inputs).budget_seconds,
        nominal=timer.budget_seconds,
        high=max(SPECIFIED_SPREAD * longest.budget_seconds, timer.budget_seconds),
        longest_tick=SPECIFIED_SPREAD * longest.interval_seconds,
    )


def _calibrated(inputs: Inputs, timer: Timer) -> Budget:
    """Close around what was measured, whether or not the first try counts."""
    factor = inputs.budget_factor
    shortest, longest = (replace(timer, budget_factor=one) for one in (factor.low, factor.high))
    tick = longest.interval_seconds
    return Budget(
        low=0.95 * shortest.budget_seconds,
        nominal=timer.budget_seconds,
        high=1.05 * longest.budget_seconds + tick,
        longest_tick=tick,
    )


def _shortest(inputs: Inputs) -> Timer:
    return replace(
        inputs.likely().timer,
        ib_timeout=inputs.ib_timeout.low,
        retry_cnt=inputs.retry_cnt.low,
        floor=inputs.timer_floor.low,
        budget_factor=inputs.budget_factor.low,
    )


def _longest(inputs: Inputs) -> Timer:
    return replace(
        inputs.likely().timer,
        ib_timeout=inputs.ib_timeout.high,
        retry_cnt=inputs.retry_cnt.high,
        floor=max(inputs.timer_floor.high, MEASURED_FLOOR),
        extra_tries=1,
        budget_factor=inputs.budget_factor.high,
    )


def _may_be_adaptive(inputs: Inputs) -> bool:
    schedule = inputs.schedule
    return "adaptive" in (schedule.low, schedule.value, schedule.high)


def death_probability(pathless_seconds: float, budget: Budget) -> float:
    """The chance that the transport gives up on a path missing for so long."""
    if pathless_seconds <= 0 or math.isinf(budget.low):
        return 0.0
    if pathless_seconds >= budget.high:
        return 1 - SURVIVAL_PAST_BUDGET
    if budget.low == 0:
        return _without_a_lower_end(pathless_seconds, budget)
    return _between(pathless_seconds, budget.low, budget.high, DEATH_BEFORE_BUDGET)


def _between(seconds: float, low: float, high: float, at_low: float) -> float:
    """The budget is as likely in one octave of its interval as in another."""
    if seconds <= low:
        return at_low
    passed = math.log(seconds / low) / math.log(high / low)
    return at_low + (1 - SURVIVAL_PAST_BUDGET - at_low) * passed


def _without_a_lower_end(seconds: float, budget: Budget) -> float:
    nominal = max(budget.nominal, FIRST_ADAPTIVE_SECONDS)
    if seconds >= nominal:
        return _between(seconds, nominal, budget.high, EARLY_DEATH)
    return DEATH_BEFORE_BUDGET + (EARLY_DEATH - DEATH_BEFORE_BUDGET) * seconds / nominal
