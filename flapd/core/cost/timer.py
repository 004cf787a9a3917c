"""Timer: when a queue pair retransmits, and when it gives up."""

import math
from typing import Literal

import msgspec

Schedule = Literal["fixed", "adaptive"]

UNIT_SECONDS = 4.096e-6
"""Of the local ACK timeout (InfiniBand Architecture Specification, volume 1)."""

FIRST_ADAPTIVE_SECONDS = 0.002
"""mlx5 with adaptive retransmission retries after 2, 4, 8 ... ms (perftest, issue 251)."""

_NEVER_FROM = 32
"""The field has 5 bits (NCCL user guide, NCCL_IB_TIMEOUT)."""
_ROUNDING = 1e-12
"""An outage of exactly n ticks, in binary, must not wait for one more."""


class Timer(msgspec.Struct, frozen=True):
    """The retry policy of a queue pair; all times in seconds, infinite where it never fires."""

    ib_timeout: int = 20
    retry_cnt: int = 7
    floor: int = 0
    """The card treats any lower `ib_timeout` as this one; 0 = it does not."""
    extra_tries: int = 0
    """1 where the first try counts besides the retries."""
    budget_factor: float = 1.0
    """Measured budget over that of the formula, and so each interval over T."""
    schedule: Schedule = "fixed"

    @property
    def tick_seconds(self) -> float:
        """T: one interval, 4.096 us * 2^timeout (NCCL user guide)."""
        if not 0 < self.ib_timeout < _NEVER_FROM:
            return math.inf
        return UNIT_SECONDS * float(2 ** max(self.ib_timeout, self.floor))

    @property
    def interval_seconds(self) -> float:
        """From one retry to the next: T, but where it was measured."""
        return self.budget_factor * self.tick_seconds

    @property
    def budget_seconds(self) -> float:
        """B: how long it retries before the error."""
        interval = self.interval_seconds
        if math.isinf(interval):
            return math.inf
        return (self.retry_cnt + self.extra_tries) * interval

    def resume_seconds(self, down_seconds: float) -> float:
        """R: the first retransmission after a path missing for `down_seconds`, from the down."""
        if down_seconds <= 0:
            return 0.0
        interval = self.interval_seconds
        if math.isinf(interval) or math.isinf(down_seconds):
            return math.inf
        if self.schedule == "fixed":
            return _next_tick(down_seconds, interval)
        return _next_adaptive(down_seconds, interval)


def _next_tick(seconds: float, tick: float) -> float:
    return tick * max(1, math.ceil(seconds / tick - _ROUNDING))


def _next_adaptive(seconds: float, tick: float) -> float:
    """Intervals double until they reach the tick and then stay."""
    elapsed, interval = min(FIRST_ADAPTIVE_SECONDS, tick), 2 * FIRST_ADAPTIVE_SECONDS
    while elapsed < seconds - _ROUNDING:
        if interval >= tick:
            return elapsed + _next_tick(seconds - elapsed, tick)
        elapsed += interval
        interval *= 2
    return elapsed
