"""Out of step: ranks that wait at one sequence number for different operations, or never came."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from flapd.model.fault import Fault
from flapd.model.times import SECOND_NS

TOGETHER_NS = 120 * SECOND_NS
"""So far apart the watchdogs of one hang may fire."""


class _Around(NamedTuple):
    """The last before a timeout and the first after it that ran another operation."""

    before: Fault | None
    after: Fault | None


class OutOfStep:
    """The timeouts of a job, by the collective in which they waited; asked about one in no time."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._absent: dict[int, list[Fault]] = {}
        """By sequence number, in order of time: ranks that never joined, by their own account."""
        self._unlike: dict[str, _Around] = {}
        by_collective: dict[tuple[int, str | None], list[Fault]] = {}
        for fault in sorted(filter(_is_timeout, faults), key=_when):
            assert fault.seq is not None
            if fault.form == "not_joined":
                self._absent.setdefault(fault.seq, []).append(fault)
            if fault.op is not None:
                by_collective.setdefault((fault.seq, fault.process_group), []).append(fault)
        for waiting in by_collective.values():
            self._compare(waiting)

    def _compare(self, waiting: Sequence[Fault]) -> None:
        before = _last_unlike(waiting)
        after = reversed(_last_unlike(waiting[::-1]))
        for fault, *around in zip(waiting, before, after, strict=True):
            self._unlike[fault.id] = _Around(*around)

    def absent(self, fault: Fault) -> Fault | None:
        """Of those that never came to the collective of this timeout, the nearest in time."""
        if fault.seq is None or fault.time_ns is None:
            return None
        absent = self._absent.get(fault.seq, [])
        place = bisect_left(absent, _when(fault), key=_when)
        return _nearest(absent[max(0, place - 1) : place + 1], fault)

    def unlike(self, fault: Fault) -> Fault | None:
        """Of those of its group that were at the same number elsewhere, the nearest in time."""
        around = self._unlike.get(fault.id, _Around(None, None))
        return _nearest([one for one in around if one is not None], fault)


def _is_timeout(fault: Fault) -> bool:
    is_placed = fault.seq is not None and fault.time_ns is not None
    return fault.kind == "watchdog_timeout" and is_placed


def _when(fault: Fault) -> tuple[int, str]:
    return fault.time_ns or 0, fault.id


def _last_unlike(ordered: Sequence[Fault]) -> list[Fault | None]:
    """Of each the last one before it that ran another operation."""
    last: Fault | None = None
    found = [last]
    for before, fault in pairwise(ordered):
        if before.op != fault.op:
            last = before
        found.append(last)
    return found


def _nearest(candidates: Iterable[Fault], fault: Fault) -> Fault | None:
    """None: all are of another hang."""
    found = min(candidates, key=lambda one: (_apart_ns(one, fault), one.id), default=None)
    return found if found is not None and _apart_ns(found, fault) <= TOGETHER_NS else None


def _apart_ns(one: Fault, other: Fault) -> int:
    return abs((one.time_ns or 0) - (other.time_ns or 0))
