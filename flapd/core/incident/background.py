"""Background: how often ports flap anyway."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from itertools import accumulate, pairwise

from flapd.core.incident.evidence import Evidence, Watched
from flapd.model.event import Outage
from flapd.model.times import SECOND_NS

_PRIOR_PER_SECOND = 0.15 / (365.25 * 86400)
"""Of a healthy port (0.15 flaps a year: facts of operators' reports)."""
BEFORE_NS = 24 * 3600 * SECOND_NS
_SHORTEST_NS = 3600 * SECOND_NS
"""A port that was watched for less is not said to flap more often than its flaps an hour."""
TOGETHER_NS = 60 * SECOND_NS
"""Flaps closer than that come of one thing: they count once, and the one in question not at all."""

Downs = Mapping[str, tuple[int, ...]]
"""Starts of all flaps that are remembered, by key of the port, in order of time."""


class Background:
    """Of these ports together; asked about each flap of theirs."""

    def __init__(self, keys: Collection[str], downs: Downs, watched: Mapping[str, Watched]) -> None:
        self._downs = downs
        self._ports = len(keys)
        self._since_ns = min(
            (watched[key].since_ns for key in keys if key in watched), default=None
        )
        self._starts = sorted(ns for key in keys for ns in downs.get(key, ()))
        breaks = (later - before > TOGETHER_NS for before, later in pairwise(self._starts))
        self._cluster = list(accumulate(breaks, initial=0))
        """Of each start the number of its cluster."""

    def per_second(self, flap_ns: int, at_ns: int) -> float:
        """Flaps in the day before `at_ns`, but for the one at `flap_ns`."""
        since_ns = at_ns - BEFORE_NS
        begin, end = bisect_left(self._starts, since_ns), bisect_right(self._starts, at_ns)
        near = (
            max(begin, bisect_left(self._starts, flap_ns - TOGETHER_NS)),
            min(end, bisect_right(self._starts, flap_ns + TOGETHER_NS)),
        )
        others = self._clusters(begin, end) - self._clusters(*near)
        known_ns = since_ns if self._since_ns is None else max(since_ns, self._since_ns)
        span_ns = max(at_ns - known_ns, _SHORTEST_NS)
        return others * SECOND_NS / span_ns + self._ports * _PRIOR_PER_SECOND

    def _clusters(self, begin: int, end: int) -> int:
        """Of the starts between these two places."""
        return self._cluster[end - 1] - self._cluster[begin] + 1 if begin < end else 0

    def flaps_in_a_day(self, key: str, at_ns: int) -> int:
        return len(self.starts(key, at_ns - BEFORE_NS, at_ns))

    def starts(self, key: str, since_ns: int, until_ns: int) -> tuple[int, ...]:
        """Of one port, between these two."""
        downs = self._downs.get(key, ())
        return downs[bisect_left(downs, since_ns) : bisect_right(downs, until_ns)]


def downs_of(evidence: Evidence, outages: Iterable[Outage]) -> Downs:
    downs = {key: list(starts) for key, starts in evidence.earlier_downs.items()}
    for outage in outages:
        if outage.cause != "boot":
            downs.setdefault(outage.key, []).append(outage.down.earliest_unix_ns)
    return {key: tuple(sorted(set(starts))) for key, starts in downs.items()}
