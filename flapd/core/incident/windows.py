"""Windows: how long after the start of a flap what it caused may be seen, and how likely when.

A lag runs from the flap's down to the symptom, in seconds. Densities are per second.
"""

import math

import msgspec

from flapd.core.cost.budget import Budget
from flapd.model.event import Outage
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS

CLOCK_SECONDS = 1.0
"""Between clocks of nodes, and the resolution of a log."""
AHEAD_SECONDS = 10.0
"""How far the CPU that enqueues collectives runs ahead of the GPU: one to two steps."""
COLLECTIVE_SECONDS = 1.0
"""An ordinary collective takes so long."""
SOONEST, LATEST = 0.9, 1.05
"""Of the budget: errors were seen so much sooner and later than the timers say."""
UNUSUAL = 0.1
"""Of the density, where only the most that a specification allows explains a lag."""


class Step(msgspec.Struct, frozen=True):
    low: float
    high: float
    density: float

    @property
    def width(self) -> float:
        return self.high - self.low


class Window(msgspec.Struct, frozen=True):
    """A density made of steps that do not overlap."""

    steps: tuple[Step, ...]

    @property
    def low(self) -> float:
        return min((step.low for step in self.steps), default=0.0)

    @property
    def high(self) -> float:
        return max((step.high for step in self.steps), default=0.0)

    def density(self, soonest: float, latest: float) -> float:
        """Of a lag that may be anything between these two."""
        if latest <= soonest:
            at = (step.density for step in self.steps if step.low <= soonest <= step.high)
            return max(at, default=0.0)
        shares = (
            step.density * max(0.0, min(step.high, latest) - max(step.low, soonest))
            for step in self.steps
        )
        return math.fsum(shares) / (latest - soonest)

    def width_of(self, density: float) -> float:
        """Of all lags that are as likely as this one, or more."""
        return math.fsum(step.width for step in self.steps if step.density >= density > 0)


def timeout_window(
    ran_seconds: float, budget: Budget, clock_seconds: float = CLOCK_SECONDS
) -> Window:
    """Of a watchdog that fired `ran_seconds` after the enqueue of what did not end.

    The flap stood in the way of the collective then: it began while that waited for its turn or
    ran, or before, by no more than the transport retries.
    """
    low = max(0.0, ran_seconds - AHEAD_SECONDS - COLLECTIVE_SECONDS - clock_seconds)
    high = ran_seconds + min(budget.nominal, ran_seconds) + clock_seconds
    longest = ran_seconds + min(budget.high, ran_seconds) + clock_seconds
    return Window(_with_tail(Step(low, high, 1 / (high - low)), longest))


def error_window(budget: Budget, tick_seconds: float) -> Window:
    """Of a transport that gave up: most likely within one interval after its budget."""
    if math.isinf(tick_seconds) or math.isinf(budget.nominal):
        return Window(())
    usual = Step(SOONEST * budget.nominal, budget.nominal + tick_seconds, 1 / tick_seconds)
    early = Step(SOONEST * budget.low, usual.low, UNUSUAL / tick_seconds)
    steps = _with_tail(usual, max(LATEST * budget.high, usual.high))
    return Window((early, *steps) if early.width > 0 else steps)


def death_window(errors: Window, later_seconds: float) -> Window:
    """Of what comes up to so much later than the transport's error, as a process's death does."""
    if not errors.steps:
        return errors
    low, high = errors.low, errors.high + later_seconds + CLOCK_SECONDS
    if not high > low:  # so long that no seconds count
        return errors
    return Window((Step(low, high, 1 / (high - low)),))


def stall_window(gap_seconds: float, resolution_seconds: float) -> Window:
    """Of traffic that stopped: at once, or as far from the flap as it pauses in ordinary steps."""
    reach = max(0.0, gap_seconds) + max(0.0, resolution_seconds) + CLOCK_SECONDS
    return Window((Step(-reach, reach, 0.5 / reach),))


def window_of_stall(stall: Stall) -> Window:
    return stall_window(stall.expected_seconds, stall.resolution_ns / SECOND_NS)


def lag_of(at_ns: int, outage: Outage) -> tuple[float, float]:
    """From the down to this moment of unix time: the shortest and the longest that it can be."""
    low = (at_ns - outage.down.latest_unix_ns) / SECOND_NS
    return low, (at_ns - outage.down.earliest_unix_ns) / SECOND_NS


def _with_tail(usual: Step, longest: float) -> tuple[Step, ...]:
    if math.isinf(longest) or longest <= usual.high:
        return (usual,)
    return (usual, Step(usual.high, longest, UNUSUAL * usual.density))
