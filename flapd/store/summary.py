"""Summary: what happened on which port in a span of time, added up."""

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


def summarise(connection: sqlite3.Connection, since_unix_ns: int, until_unix_ns: int) -> Summary:
    """Outages that overlap the span, borders included: an index range of each facet."""
    since_unix_ns, until_unix_ns = (min(at, _HIGHEST) for at in (since_unix_ns, until_unix_ns))
    by_port: dict[str, dict[str, Tally]] = defaultdict(lambda: defaultdict(Tally))
    facets = connection.execute("SELECT facet, cause, length_class FROM facets").fetchall()
    for facet, cause, klass in facets:
        longest = longest_ns(klass)
        earliest = _LOWEST if longest is None else max(_LOWEST, since_unix_ns - longest)
        span = (facet, earliest, until_unix_ns, since_unix_ns)
        for port, *sums in connection.execute(_IN_FACET, span):
            by_port[port][cause] += Tally(*sums)
    return Summary({port: dict(causes) for port, causes in by_port.items()})
