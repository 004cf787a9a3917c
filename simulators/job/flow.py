"""Flow: one exchange of data through a fabric whose ports come and go.

All ranks take part in it, so one missing path stops all; who waits has nothing outstanding, hence
a port that goes and comes back meanwhile is never noticed.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

from simulators.job.happenings import Outage
from simulators.job.queue_pair import Fate, QueuePair, fate_of, queue_pairs
from simulators.job.spec import JobSpec


class Halt(NamedTuple):
    """From `begin` to `end` nothing moved, for these outages (numbers of happenings)."""

    begin: float
    end: float
    outages: tuple[int, ...]
    fates: tuple[Fate, ...]


class Broken(NamedTuple):
    """Since `begin` nothing moves, and some queue pairs gave up on it."""

    begin: float
    outages: tuple[int, ...]
    fates: tuple[Fate, ...]
    """Of those that did not go on; `at` None: it waits for ever."""


class Flow(NamedTuple):
    """When data moved; `end` is when all of it had, or when it moved last."""

    spans: tuple[tuple[float, float], ...]
    halts: tuple[Halt, ...]
    end: float
    broken: Broken | None


class Paths:
    """The ports of the job's own rails at every moment."""

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec
        used = [
            (number, one)
            for number, one in enumerate(spec.happenings)
            if isinstance(one, Outage) and one.port < spec.ranks_per_node
        ]
        self._outages = sorted(used, key=lambda item: item[1].at_seconds)
        self._begins = [outage.at_seconds for _, outage in self._outages]
        self._longest = max((o.usable_at - o.at_seconds for _, o in self._outages), default=0.0)

    def flow(self, begin: float, seconds: float) -> Flow:
        """Data that takes so long to move, from `begin` on."""
        spans: list[tuple[float, float]] = []
        halts: list[Halt] = []
        now, left = begin, seconds
        while True:
            stop = self._stop_within(now, now + left)
            if stop is None:
                spans.append((now, now + left))
                return Flow(tuple(spans), tuple(halts), now + left, None)
            if stop > now:
                spans.append((now, stop))
            left -= stop - now
            numbers = self._missing_at(stop)
            fates = [fate for number in numbers for fate in self._fates(number, stop)]
            lost = tuple(fate for fate in fates if fate.gave_up)
            if lost:
                return Flow(tuple(spans), tuple(halts), stop, Broken(stop, numbers, lost))
            now = max(fate.at for fate in fates if fate.at is not None)
            halts.append(Halt(stop, now, numbers, tuple(fates)))

    def _stop_within(self, begin: float, end: float) -> float | None:
        first = bisect_left(self._begins, begin - self._longest)
        for _, outage in self._outages[first:]:
            if outage.at_seconds >= end:
                return None
            if outage.usable_at > begin:
                return max(begin, outage.at_seconds)
        return None

    def _missing_at(self, moment: float) -> tuple[int, ...]:
        first = bisect_left(self._begins, moment - self._longest)
        return tuple(
            number
            for number, outage in self._outages[first:]
            if outage.at_seconds <= moment < outage.usable_at
        )

    def _fates(self, number: int, sent_at: float) -> list[Fate]:
        outage = self._spec.happenings[number]
        assert isinstance(outage, Outage)
        pairs = queue_pairs(self._spec, outage.node, outage.port)
        return [fate_of(pair, self._spec, sent_at, self._path(pair, outage.port)) for pair in pairs]

    def _path(self, pair: QueuePair, port: int) -> Callable[[float], bool]:
        """Whether both ends of it have one at a moment."""
        nodes = {self._spec.node_of(pair.owner), self._spec.node_of(pair.peer)}
        crossed = [one for _, one in self._outages if one.node in nodes and one.port == port]
        return lambda at: all(
            at < one.at_seconds or (at >= one.usable_at and not one.gid_changes) for one in crossed
        )
