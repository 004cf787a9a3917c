"""Slowing down: less traffic in whole steps than the job used to move (Page's CUSUM).

One sample in 10 s, a slack of half a standard deviation and a limit of 8 mean a false alarm in
53 hours (Siegmund's approximation); a fall by one deviation is found after 17 samples.
"""

import msgspec

from flapd.model.stall import Slowdown
from flapd.model.times import SECOND_NS

_BLOCK_NS = 10 * SECOND_NS
_KEPT = 360
_ENOUGH = 60
_SLACK = 0.5
_LIMIT = 8.0
_MOST = 9.0
"""However slow it was, it is not long in being over."""
_OVER = 4.0
_MAD_TO_SIGMA = 1.4826
_LEAST_SIGMA_SHARE = 0.01
"""Of the mean: blocks of a job in lockstep differ by nearly nothing."""


class Speed(msgspec.Struct):
    """What is kept of a job's speed."""

    begin_ns: int | None = None
    moved_bytes: int = 0
    usual: list[float] = []
    """Bytes a second, of the last hour's blocks without stall and slowdown."""
    sum: float = 0.0
    falling_since_ns: int = 0
    slow: Slowdown | None = None

    def add(self, time_ns: int, moved_bytes: int) -> None:
        """Bytes that a port of the job moved until now."""
        if self.begin_ns is None:
            self.begin_ns = time_ns
        else:
            self.moved_bytes += moved_bytes

    def close(self, job: str, time_ns: int) -> Slowdown | None:
        """A step ends now, or there are none: what the block tells, once it is long enough.

        A block that is no whole number of steps would have now more and now less of a burst.
        """
        if self.begin_ns is None or time_ns - self.begin_ns < _BLOCK_NS:
            return None
        begin_ns, rate = self.begin_ns, self.moved_bytes * SECOND_NS / (time_ns - self.begin_ns)
        self.begin_ns, self.moved_bytes = time_ns, 0
        return self._judge(job, begin_ns, time_ns, rate)

    def leave_out(self) -> None:
        """Traffic stood still or is not known: this block says nothing."""
        self.begin_ns, self.moved_bytes = None, 0

    def _judge(self, job: str, begin_ns: int, end_ns: int, rate: float) -> Slowdown | None:
        if len(self.usual) < _ENOUGH:
            self.usual.append(rate)
            return None
        mean, sigma = _centre(self.usual)
        if self.sum == 0.0:
            self.falling_since_ns = begin_ns
        self.sum = min(_MOST, max(0.0, self.sum + (mean - rate) / sigma - _SLACK))
        if self.slow is None and self.sum <= _LIMIT:
            self.usual = [*self.usual[-_KEPT + 1 :], rate]
            return None
        return self._tell(job, end_ns, rate, mean)

    def _tell(self, job: str, end_ns: int, rate: float, mean: float) -> Slowdown | None:
        """When it begins and when it is over."""
        if self.slow is None:
            self.slow = Slowdown(
                job=job,
                begin_ns=self.falling_since_ns,
                end_ns=None,
                bytes_per_second=rate,
                usual_bytes_per_second=mean,
            )
            return self.slow
        if self.sum > _OVER:
            return None
        over, self.slow = msgspec.structs.replace(self.slow, end_ns=end_ns), None
        self.sum = 0.0
        return over


def _centre(values: list[float]) -> tuple[float, float]:
    """Median, and a deviation that outliers do not move."""
    middle = _median(values)
    spread = _MAD_TO_SIGMA * _median([abs(one - middle) for one in values])
    return middle, max(spread, _LEAST_SIGMA_SHARE * middle, 1.0)


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
