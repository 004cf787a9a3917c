"""InOrder: outages by the time of their down, so that few are looked at for each symptom."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from flapd.core.incident.evidence import begin_ns, end_ns
from flapd.model.event import Outage


class InOrder:
    def __init__(self, outages: Iterable[Outage]) -> None:
        """`outages` are in order of the first moment at which each may have begun."""
        self._outages = tuple(outages)
        self._earliest = [begin_ns(one) for one in self._outages]
        latest = (one.down.latest_unix_ns for one in self._outages)
        self._latest_so_far = list(accumulate(latest, max))
        self._by_node: dict[str, list[Outage]] = {}
        for one in self._outages:
            self._by_node.setdefault(one.node, []).append(one)

    def between(self, first_ns: int, last_ns: int) -> Sequence[Outage]:
        """All that may have begun between these two, in order; of those before, some more."""
        begin = bisect_left(self._latest_so_far, first_ns)
        return self._outages[begin : bisect_right(self._earliest, last_ns)]

    def down_at(self, node: str, at_ns: int) -> list[Outage]:
        """Those of a node that had begun by then, and were not over as far as is known."""
        return [one for one in self._by_node.get(node, ()) if _is_down(one, at_ns)]


def _is_down(outage: Outage, at_ns: int) -> bool:
    if outage.down.latest_unix_ns > at_ns or outage.status == "lost":
        return False
    last_ns = end_ns(outage)
    return last_ns is None or last_ns > at_ns
