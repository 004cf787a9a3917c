"""Background: how often a port flaps anyway."""

from collections.abc import Iterable, Mapping

import msgspec

from flapd.core.incident.evidence import Evidence, Watched
from flapd.model.event import Outage
from flapd.model.times import SECOND_NS

_PRIOR_PER_SECOND = 0.15 / (365.25 * 86400)
"""Of a healthy port (0.15 flaps a year: facts of operators' reports)."""
_BEFORE_NS = 24 * 3600 * SECOND_NS
_SHORTEST_NS = 3600 * SECOND_NS
"""A port that was watched for less is not said to flap more often than its flaps an hour."""
TOGETHER_NS = 60 * SECOND_NS
"""Flaps closer than that come of one thing: they count once, and the one in question not at all."""


class Background(msgspec.Struct, frozen=True):
    """Starts of all flaps that are remembered, by key of the port."""

    downs: Mapping[str, tuple[int, ...]]
    watched: Mapping[str, Watched]

    def per_second(self, keys: Iterable[str], flap_ns: int, at_ns: int) -> float:
        """Flaps of these ports together in the day before `at_ns`, but for the one at `flap_ns`."""
        ports = sorted(set(keys))
        since_ns = at_ns - _BEFORE_NS
        starts = sorted(
            ns for key in ports for ns in self.downs.get(key, ()) if since_ns <= ns <= at_ns
        )
        others = sum(not _near(one, flap_ns) for one in _clusters(starts))
        watched = [self.watched[key].since_ns for key in ports if key in self.watched]
        span_ns = max(at_ns - max(since_ns, min(watched, default=since_ns)), _SHORTEST_NS)
        return others * SECOND_NS / span_ns + len(ports) * _PRIOR_PER_SECOND

    def flaps_in_a_day(self, key: str, at_ns: int) -> int:
        return sum(at_ns - _BEFORE_NS <= ns <= at_ns for ns in self.downs.get(key, ()))


def background_of(evidence: Evidence, outages: Iterable[Outage]) -> Background:
    downs = {key: list(starts) for key, starts in evidence.earlier_downs.items()}
    for outage in outages:
        if outage.cause != "boot":
            downs.setdefault(outage.key, []).append(outage.down.earliest_unix_ns)
    return Background(
        {key: tuple(sorted(set(starts))) for key, starts in downs.items()}, evidence.watched
    )


def _clusters(starts: Iterable[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for ns in starts:
        if found and ns - found[-1][-1] <= TOGETHER_NS:
            found[-1].append(ns)
        else:
            found.append([ns])
    return found


def _near(cluster: list[int], flap_ns: int) -> bool:
    return cluster[0] - TOGETHER_NS <= flap_ns <= cluster[-1] + TOGETHER_NS
