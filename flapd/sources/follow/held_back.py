"""HeldBack: faults that say the same as many before them are counted, not told.

NCCL 2.19 to 2.25 print errors in a stream after the first, until the process is killed.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from flapd.model.fault import Fault
from flapd.model.times import SECOND_NS

MOST_ALIKE = 100
WITHIN_NS = 60 * SECOND_NS
_MOST_KINDS = 4096


class HeldBack:
    """Used from one thread at a time."""

    def __init__(self, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.count = 0
        self._now_ns = now_ns
        self._seen: OrderedDict[Hashable, tuple[int, int]] = OrderedDict()
        """Since when, and how many."""

    def holds(self, fault: Fault) -> bool:
        """The first hundred within a minute pass."""
        alike, now_ns = _alike(fault), self._now_ns()
        since_ns, number = self._seen.get(alike, (now_ns, 0))
        if now_ns - since_ns > WITHIN_NS:
            since_ns, number = now_ns, 0
        self._seen[alike] = since_ns, number + 1
        if len(self._seen) > _MOST_KINDS:
            self._seen.popitem(last=False)
        self.count += number >= MOST_ALIKE
        return number >= MOST_ALIKE


def _alike(fault: Fault) -> Hashable:
    who = fault.host, fault.pid, fault.rank, fault.process_group
    what = fault.kind, fault.form, fault.status, fault.event, fault.hca, fault.seq, fault.peer
    return who, what
