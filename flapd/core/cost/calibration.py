"""Calibration: how long a retry takes on this node, from stalls that were measured.

Traffic that stopped is sent again every so many seconds, tau, and the first time after the path is
back ends the stall: it lasted k * tau, and (k - 1) * tau was too early. What fits all stalls of a
port is what its card does. By the InfiniBand specification tau is 1 to 4 times
4.096 us * 2^timeout; cards that treat low timeouts as a higher one take longer.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from flapd.core.cost.budget import MEASURED_FLOOR, SPECIFIED_SPREAD
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.timer import Timer
from flapd.model.given import Given, exactly

ENOUGH_FLAPS = 3
"""That agree; fewer may do so by accident."""

_TOLERANCE = 0.05
"""Cards keep to the specification no better than that."""
_STEP = 0.05
"""Factors are told in such steps, so that not every flap tells another one."""

Ends = tuple[float, float]


class Measured(msgspec.Struct, frozen=True):
    """A stall that one outage brought; least and most in seconds since traffic stopped."""

    stall: str
    flap: str
    port: str
    at_unix_ns: int
    ib_timeout: int
    retry_cnt: int
    path_back: Ends
    resumed: Ends


class Retry(msgspec.Struct, frozen=True):
    """What one retry takes under a timeout; 0 as `timer_floor`: none is needed to explain it."""

    ib_timeout: int
    timer_floor: int
    budget_factor: Given[float]
    flaps: tuple[str, ...]
    """Ids of those that agree."""
    contradicted: int
    """Flaps before those that do not fit, and are left out."""

    @property
    def is_enough(self) -> bool:
        return len(self.flaps) >= ENOUGH_FLAPS

    @property
    def source(self) -> str:
        """In words."""
        odd = f"; {self.contradicted} before those did not fit" if self.contradicted else ""
        return f"measured on this node ({len(self.flaps)} flaps{odd})"


class _Fit(msgspec.Struct, frozen=True):
    """The latest stalls of a port that agree, and the seconds that fit them all; none is empty."""

    stalls: tuple[Measured, ...]
    seconds: tuple[Ends, ...]


def calibrate(measured: Iterable[Measured]) -> tuple[Retry, ...]:
    """One a timeout."""
    ports: dict[tuple[int, str], list[Measured]] = {}
    for one in sorted(measured, key=lambda one: (one.ib_timeout, one.at_unix_ns, one.stall)):
        ports.setdefault((one.ib_timeout, one.port), []).append(one)
    found = []
    for timeout in sorted({timeout for timeout, _ in ports}):
        of_timeout = [ones for (its, _), ones in ports.items() if its == timeout]
        fits = [_fit(ones) for ones in of_timeout]
        found.append(_retry(timeout, fits, sum(map(len, of_timeout))))
    return tuple(found)


def in_force(retries: Iterable[Retry]) -> list[tuple[int, int, Given[float]]]:
    """What of them changes any figure."""
    return [
        (one.ib_timeout, one.timer_floor, one.budget_factor) for one in retries if one.is_enough
    ]


def retry_of(retries: Iterable[Retry], inputs: Inputs) -> Retry | None:
    """What is known here of the timers of a job; None: too little, or somebody said it.

    A low timeout may have met the card's floor, and tells nothing of a higher one.
    """
    schedule, timeout = inputs.schedule, inputs.ib_timeout
    is_fixed = schedule.low == schedule.value == schedule.high == "fixed"
    is_open = inputs.budget_factor.source == inputs.timer_floor.source == "default"
    if not (is_fixed and is_open and timeout.low == timeout.high):
        return None
    fitting = [
        one
        for one in retries
        if one.is_enough
        and (one.ib_timeout == timeout.value or MEASURED_FLOOR <= one.ib_timeout < timeout.value)
    ]
    return max(fitting, key=lambda one: one.ib_timeout, default=None)


def with_retry(inputs: Inputs, retry: Retry | None) -> Inputs:
    if retry is None:
        return inputs
    floor = exactly(retry.timer_floor, "calibrated")
    return replace(inputs, budget_factor=retry.budget_factor, timer_floor=floor)


def _fit(ones: Sequence[Measured]) -> _Fit:
    """What contradicts all before it stands alone: perhaps a card was replaced."""
    fit = _Fit((), ())
    for one in ones:
        own = _seconds(one)
        both = _meet(fit.seconds, own)
        fit = _Fit((*fit.stalls, one), both) if both else _Fit((one,) if own else (), own)
    return fit


def _seconds(one: Measured) -> tuple[Ends, ...]:
    """One interval for each number of retries that it may have taken."""
    shortest = (1 - _TOLERANCE) * _tick(one.ib_timeout)
    longest = (1 + _TOLERANCE) * SPECIFIED_SPREAD * _tick(max(one.ib_timeout, MEASURED_FLOOR))
    found = []
    for tries in range(1, one.retry_cnt + 2):
        low, high = (seconds / tries for seconds in one.resumed)
        is_first_after_path = (tries - 1) * low < one.path_back[1]
        if is_first_after_path and low <= longest and high >= shortest:
            found.append((max(low, shortest), min(high, longest)))
    return tuple(sorted(found))


def _meet(some: Iterable[Ends], others: Sequence[Ends]) -> tuple[Ends, ...]:
    pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in some for b in others)
    return tuple(sorted(pair for pair in pairs if pair[0] <= pair[1]))


def _retry(timeout: int, fits: Sequence[_Fit], count: int) -> Retry:
    """Cards of a node are of one kind: what one of its ports does, another may do."""
    known = [fit for fit in fits if fit.seconds]
    agreed = tuple(one.flap for fit in known for one in fit.stalls)
    low = min((fit.seconds[0][0] for fit in known), default=_tick(timeout))
    high = max((fit.seconds[-1][1] for fit in known), default=low)
    likely = [_likeliest(fit.seconds, timeout) for fit in known]
    value = sum(likely) / len(likely) if likely else low
    floor = _floor(timeout, value)
    tick = _tick(max(timeout, floor))
    low, high = (_STEP * math.floor(low / tick / _STEP), _STEP * math.ceil(high / tick / _STEP))
    value = min(max(round(value / tick / _STEP) * _STEP, low), high)
    factor = Given(round(value, 2), round(low, 2), round(high, 2), "calibrated")
    return Retry(timeout, floor, factor, agreed, count - len(agreed))


def _likeliest(seconds: Sequence[Ends], timeout: int) -> float:
    """The shortest that a card with the measured floor may take, else the longest."""
    usual = (1 - _TOLERANCE) * _tick(max(timeout, MEASURED_FLOOR))
    low, high = next((one for one in seconds if one[1] >= usual), seconds[-1])
    return (low + high) / 2


def _floor(timeout: int, seconds: float) -> int:
    """The timeout that the card took instead, where no timer of this one takes so long."""
    if seconds <= (1 + _TOLERANCE) * SPECIFIED_SPREAD * _tick(timeout):
        return 0
    return int(math.log2(seconds * (1 + _TOLERANCE) / _tick(timeout))) + timeout


def _tick(timeout: int) -> float:
    return Timer(ib_timeout=timeout).tick_seconds
