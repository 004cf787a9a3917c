"""Bounds: the least and the most that each regime can have cost."""

from flapd.core.cost.budget import Budget
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.price import FAILOVER_PROBE_SECONDS, after_death, detected_after, parts_of
from flapd.core.cost.timer import FIRST_ADAPTIVE_SECONDS
from flapd.model.loss import Parts, Range, Regime


def lost_range(regime: Regime, inputs: Inputs, budget: Budget) -> tuple[Range, Parts]:
    """Seconds lost in this regime, and what the likely ones are made of."""
    if regime == "hidden":
        return Range(0.0, 0.0, 0.0), Parts()
    if regime in ("absorbed", "failover"):
        return _stalled(regime, inputs, budget)
    return _died(regime, inputs, budget)


def _stalled(regime: Regime, inputs: Inputs, budget: Budget) -> tuple[Range, Parts]:
    bounds = _absorbed if regime == "absorbed" else _failed_over
    low, high = bounds(inputs, budget)
    stall = _clamped(parts_of(regime, inputs.likely()).stall, low, high)
    return Range(low, stall, high), Parts(stall=stall)


def _absorbed(inputs: Inputs, budget: Budget) -> tuple[float, float]:
    """Traffic flows again within one interval after the path is back, wherever its phase is."""
    least, most = inputs.least(), inputs.most()
    latest = most.pathless_seconds + budget.longest_tick
    if inputs.schedule.low == inputs.schedule.high == "adaptive":
        latest = min(latest, 2 * most.pathless_seconds + FIRST_ADAPTIVE_SECONDS)
    # A job that was seen to outlive the watchdog's time has another watchdog than is thought.
    ended = max(most.pathless_seconds, min(latest, most.patience_seconds))
    return (
        max(0.0, least.pathless_seconds - least.slack_seconds),
        max(0.0, ended - most.slack_seconds),
    )


def _failed_over(inputs: Inputs, budget: Budget) -> tuple[float, float]:
    least, most = inputs.least(), inputs.most()
    still = _given_up_by(inputs, budget) + FAILOVER_PROBE_SECONDS
    slow = max(0.0, most.pathless_seconds - budget.low - FAILOVER_PROBE_SECONDS)
    return (
        max(0.0, budget.low + FAILOVER_PROBE_SECONDS - least.slack_seconds),
        max(0.0, still - most.slack_seconds) + most.failover_slowdown * slow,
    )


def _died(regime: Regime, inputs: Inputs, budget: Budget) -> tuple[Range, Parts]:
    low, high = _detected(regime, inputs, budget)
    likely = inputs.likely()
    parts = after_death(likely, _clamped(detected_after(regime, likely), low, high))
    lowest = after_death(inputs.least(), low).lost
    highest = after_death(inputs.most(), high).lost
    return Range(lowest, parts.lost, highest), parts


def _detected(regime: Regime, inputs: Inputs, budget: Budget) -> tuple[float, float]:
    least, most = inputs.least(), inputs.most()
    if regime == "watchdog":
        return detected_after(regime, least), detected_after(regime, most)
    return budget.low + least.poll_seconds, _given_up_by(inputs, budget) + most.poll_seconds


def _given_up_by(inputs: Inputs, budget: Budget) -> float:
    """The transport gave up before the path was back, else it would not have given up."""
    longest = max(inputs.most().pathless_seconds, budget.low)
    return min(budget.high, longest)


def _clamped(value: float, low: float, high: float) -> float:
    return max(low, min(value, high))
