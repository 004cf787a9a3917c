"""IncidentSummary: what the incidents of a span of time cost, added up."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from functools import reduce

import msgspec

from flapd.model.loss import Range
from flapd.store.shelf import INCIDENTS
from flapd.store.span import clamped, longest_ns
from flapd.store.summary import port_of_node

NOTHING = Range(0.0, 0.0, 0.0)
_LOWEST = -(2**63)


class IncidentTally(msgspec.Struct, frozen=True):
    """Incidents added up, each of them whole, also where it began or ended outside the span."""

    incidents: int = 0
    unpriced: int = 0
    """Those in it of which nobody knows what they cost."""
    gpu_seconds: Range = NOTHING
    """Of the others."""

    def __add__(self, other: "IncidentTally") -> "IncidentTally":
        return IncidentTally(
            self.incidents + other.incidents,
            self.unpriced + other.unpriced,
            sum_of((self.gpu_seconds, other.gpu_seconds)),
        )


class IncidentSummary(msgspec.Struct, frozen=True):
    by_verdict: dict[str, IncidentTally]
    by_regime: dict[str, IncidentTally]
    """Those without a regime are in none of them."""
    open: int
    by_port: dict[str, Range]
    """GPU-seconds that outages of a port are held to have cost, by its name."""

    @property
    def total(self) -> IncidentTally:
        return sum(self.by_verdict.values(), IncidentTally())

    @property
    def claimed(self) -> Range:
        """What outages of ports here are held to have cost."""
        return sum_of(self.by_port.values())


def sum_of(ranges: Iterable[Range]) -> Range:
    return reduce(
        lambda one, other: Range(
            one.low + other.low, one.likely + other.likely, one.high + other.high
        ),
        ranges,
        NOTHING,
    )


_IN_FACET = f"""
SELECT count(*), sum(gpu_likely IS NULL), total(gpu_low), total(gpu_likely), total(gpu_high)
FROM incidents INDEXED BY incidents_by_facet
WHERE facet = ? AND begin_unix_ns BETWEEN ? AND ? AND end_unix_ns >= ? AND {INCIDENTS.shown}
"""  # noqa: S608 - a condition of ours

_OF_PORTS = f"""
SELECT link_port, link_node, total(flap_incidents.gpu_low), total(flap_incidents.gpu_likely),
    total(flap_incidents.gpu_high)
FROM incidents INDEXED BY incidents_by_facet
CROSS JOIN flap_incidents ON flap_incidents.incident = incidents.id
WHERE facet = ? AND begin_unix_ns BETWEEN ? AND ? AND end_unix_ns >= ? AND {INCIDENTS.shown}
    AND link_port IS NOT NULL AND flap_incidents.gpu_likely IS NOT NULL
GROUP BY link_node, link_port
"""  # noqa: S608 - likewise


def summarise_incidents(
    connection: sqlite3.Connection, since_unix_ns: int, until_unix_ns: int, *, of_fleet: bool
) -> IncidentSummary:
    """Incidents that overlap the span, borders included: an index range of each facet.

    `of_fleet`: ports are told apart by their node as well.
    """
    by_verdict: dict[str, IncidentTally] = defaultdict(IncidentTally)
    by_regime: dict[str, IncidentTally] = defaultdict(IncidentTally)
    by_port: dict[str, Range] = defaultdict(lambda: NOTHING)
    still_open = 0
    facets = connection.execute("SELECT * FROM incident_facets").fetchall()
    for facet, verdict, regime, status, klass in facets:
        span = _span(facet, klass, since_unix_ns, until_unix_ns)
        tally = _tally(*connection.execute(_IN_FACET, span).fetchone())
        if not tally.incidents:
            continue
        by_verdict[verdict] += tally
        if regime:
            by_regime[regime] += tally
        still_open += tally.incidents if status == "open" else 0
        for port, node, *gpu in connection.execute(_OF_PORTS, span):
            name = port_of_node(node, port) if of_fleet else port
            by_port[name] = sum_of((by_port[name], Range(*gpu)))
    return IncidentSummary(dict(by_verdict), dict(by_regime), still_open, dict(by_port))


def _span(facet: int, klass: int, since_unix_ns: int, until_unix_ns: int) -> tuple[int, ...]:
    longest = longest_ns(klass)
    earliest = _LOWEST if longest is None else clamped(since_unix_ns - longest)
    return facet, earliest, clamped(until_unix_ns), clamped(since_unix_ns)


def _tally(incidents: int, unpriced: int | None, *gpu: float) -> IncidentTally:
    return IncidentTally(incidents, unpriced or 0, Range(*gpu))
