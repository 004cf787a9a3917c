"""Summary: what happened on which port in a span of time, added up."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from flapd.core.fabric.view import COUNTED_CAUSES
from flapd.store.span import longest_ns


class Tally(msgspec.Struct, frozen=True):
    """Outages added up, each of them whole, also where it began or ended outside the span."""

    outages: int = 0
    downs: int = 0
    """Downs in them: a burst has several."""
    down_ns_min: int = 0
    """Shortest time they can have been down, of those whose end is known."""
    down_ns_max: int = 0
    endless: int = 0
    """Outages in it whose end is not known: open, or lost."""

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.outages + other.outages,
            self.downs + other.downs,
            self.down_ns_min + other.down_ns_min,
            self.down_ns_max + other.down_ns_max,
            self.endless + other.endless,
        )


class Summary(msgspec.Struct, frozen=True):
    """Outages that overlap a span, by port name and cause."""

    by_port: dict[str, dict[str, Tally]]

    @property
    def total(self) -> Tally:
        """Of causes that count; what people and reboots did is in `by_cause` alone."""
        return _sum(map(_counted, self.by_port.values()))

    @property
    def by_cause(self) -> dict[str, Tally]:
        totals: dict[str, Tally] = defaultdict(Tally)
        for causes in self.by_port.values():
            for cause, tally in causes.items():
                totals[cause] += tally
        return dict(totals)

    def worst_ports(self, most: int) -> list[tuple[str, Tally]]:
        """Ports with the most downs that the fabric caused, then the longest down."""
        counted = {port: _counted(causes) for port, causes in self.by_port.items()}
        worst = sorted(counted.items(), key=lambda item: (-item[1].downs, -item[1].down_ns_max))
        return [item for item in worst if item[1].outages][:most]


class FleetSummary(Summary, frozen=True):
    """Outages of many nodes; `by_port` has the ports with the most downs, by node and name."""

    causes: dict[str, Tally]
    """Of all ports."""

    @property
    def total(self) -> Tally:
        return _counted(self.causes)

    @property
    def by_cause(self) -> dict[str, Tally]:
        return self.causes


def port_of_node(node: str, port: str) -> str:
    """How a port is called where there are many nodes; no port's name has a blank."""
    return f"{node} {port}"


def _counted(by_cause: Mapping[str, Tally]) -> Tally:
    return _sum(tally for cause, tally in by_cause.items() if cause in COUNTED_CAUSES)


def _sum(tallies: Iterable[Tally]) -> Tally:
    return sum(tallies, Tally())


_LOWEST = -(2**63)
_HIGHEST = 2**63 - 1

_IN_FACET = """
SELECT port, count(*), sum(count), ifnull(sum(down_ns_min), 0), ifnull(sum(down_ns_max), 0),
    sum(down_ns_max IS NULL)
FROM flaps INDEXED BY flaps_by_facet
WHERE facet = ? AND down_unix_ns BETWEEN ? AND ? AND end_unix_ns >= ? GROUP BY port
"""


_WORST = """
SELECT node, port, cause, count(*), sum(count), ifnull(sum(down_ns_min), 0),
    ifnull(sum(down_ns_max), 0), sum(down_ns_max IS NULL)
FROM (
    SELECT json_extract(value, '$[0]') AS facet, json_extract(value, '$[1]') AS cause,
        json_extract(value, '$[2]') AS earliest FROM json_each(?1)
)
CROSS JOIN flaps INDEXED BY flaps_by_facet USING (facet)
WHERE down_unix_ns BETWEEN earliest AND ?2 AND end_unix_ns >= ?3
GROUP BY node, port, cause ORDER BY sum(count) DESC, node, port LIMIT ?4
"""


def summarise(connection: sqlite3.Connection, since_unix_ns: int, until_unix_ns: int) -> Summary:
    """Outages that overlap the span, borders included: an index range of each facet."""
    since_unix_ns, until_unix_ns = (min(at, _HIGHEST) for at in (since_unix_ns, until_unix_ns))
    by_port: dict[str, dict[str, Tally]] = defaultdict(lambda: defaultdict(Tally))
    for facet, cause, earliest in _facets(connection, since_unix_ns):
        span = (facet, earliest, until_unix_ns, since_unix_ns)
        for port, *sums in connection.execute(_IN_FACET, span):
            by_port[port][cause] += Tally(*sums)
    return Summary({port: dict(causes) for port, causes in by_port.items()})


def summarise_fleet(
    connection: sqlite3.Connection, since_unix_ns: int, until_unix_ns: int, most: int
) -> FleetSummary:
    """Likewise of many nodes, with at most so many ports and causes: the worst."""
    since_unix_ns, until_unix_ns = (min(at, _HIGHEST) for at in (since_unix_ns, until_unix_ns))
    causes = summarise(connection, since_unix_ns, until_unix_ns).by_cause
    facets = json.dumps(_facets(connection, since_unix_ns))
    by_port: dict[str, dict[str, Tally]] = defaultdict(dict)
    rows = connection.execute(_WORST, (facets, until_unix_ns, since_unix_ns, most))
    for node, port, cause, *sums in rows:
        by_port[port_of_node(node, port)][cause] = Tally(*sums)
    return FleetSummary(dict(by_port), causes)


def _facets(connection: sqlite3.Connection, since_unix_ns: int) -> list[tuple[int, str, int]]:
    """With the earliest begin of an outage that can reach into the span."""
    rows = connection.execute("SELECT facet, cause, length_class FROM facets").fetchall()
    return [(facet, cause, _earliest(klass, since_unix_ns)) for facet, cause, klass in rows]


def _earliest(klass: int, since_unix_ns: int) -> int:
    longest = longest_ns(klass)
    return _LOWEST if longest is None else max(_LOWEST, since_unix_ns - longest)
