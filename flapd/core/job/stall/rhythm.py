"""Rhythm: how a job's traffic pauses and repeats in ordinary steps, learned robustly."""

from bisect import bisect_left, insort

import msgspec

from flapd.model.times import SECOND_NS

SHORTEST_GAP_NS = 3 * SECOND_NS // 10
"""Pauses inside a burst are shorter, and would outnumber those between steps."""
SHORTEST_STALL_NS = SECOND_NS
_FACTOR = 1.5
_KEPT_NS = 3600 * SECOND_NS
_MOST_GAPS = 2048
_ENOUGH_GAPS = 50
_ENOUGH_TRAFFIC_NS = 60 * SECOND_NS
"""A job whose steps are too short to show gaps is known after so much traffic."""
_NEW_RHYTHM = 6
"""So many long gaps among _ENOUGH_GAPS ordinary ones are no stalls: the job does something else."""
_ALIKE_SHARE = 0.05
_ALIKE_NS = SECOND_NS // 5


class Rhythm(msgspec.Struct):
    """Gaps between bursts, the newest of the last hour; those that were stalls are left out."""

    ended_ns: list[int] = []
    gaps_ns: list[int] = []
    """In order of time."""
    sorted_ns: list[int] = []
    traffic_ns: int = 0
    long_ones: list[int] = []
    """Those that were taken for stalls since the rhythm was last known to hold."""
    since_long: int = 0

    @property
    def is_known(self) -> bool:
        return len(self.gaps_ns) >= _ENOUGH_GAPS or self.traffic_ns >= _ENOUGH_TRAFFIC_NS

    @property
    def usual_ns(self) -> int:
        """The median gap."""
        return self.sorted_ns[len(self.sorted_ns) // 2] if self.sorted_ns else 0

    @property
    def longest_usual_ns(self) -> int:
        """The 99th percentile of the gaps."""
        return self.sorted_ns[(len(self.sorted_ns) - 1) * 99 // 100] if self.sorted_ns else 0

    @property
    def stall_after_ns(self) -> int:
        """A gap this long is a stall."""
        return max(SHORTEST_STALL_NS, round(_FACTOR * self.longest_usual_ns))

    def is_usual(self, length_ns: int) -> bool:
        """There were many gaps like it."""
        around_ns = max(_ALIKE_NS, length_ns // 10)
        first = bisect_left(self.sorted_ns, length_ns - around_ns)
        last = bisect_left(self.sorted_ns, length_ns + around_ns + 1)
        return last - first > _ALIKE_SHARE * len(self.sorted_ns)

    def take_gap(self, end_ns: int, length_ns: int) -> None:
        if length_ns < SHORTEST_GAP_NS:
            return
        self._add(end_ns, length_ns)
        self.since_long += 1
        if self.since_long >= _ENOUGH_GAPS:
            self.long_ones.clear()
        while len(self.gaps_ns) > _MOST_GAPS or self.ended_ns[0] < end_ns - _KEPT_NS:
            del self.ended_ns[0]
            del self.sorted_ns[bisect_left(self.sorted_ns, self.gaps_ns.pop(0))]

    def take_stall(self, end_ns: int, length_ns: int) -> None:
        """Not learned, unless they come so often that this is the new rhythm."""
        self.since_long = 0
        self.long_ones.append(length_ns)
        if len(self.long_ones) >= _NEW_RHYTHM:
            for length in self.long_ones:
                self._add(end_ns, length)
            self.long_ones.clear()

    def _add(self, end_ns: int, length_ns: int) -> None:
        self.ended_ns.append(end_ns)
        self.gaps_ns.append(length_ns)
        insort(self.sorted_ns, length_ns)
