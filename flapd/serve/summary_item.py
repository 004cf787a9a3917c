"""SummaryItem: what happened in a span of time, added up."""

import msgspec

from flapd.model.times import SECOND_NS, rfc3339
from flapd.serve.items import Seconds
from flapd.store.summary import Summary, Tally

_WORST = 10


class TallyItem(msgspec.Struct, frozen=True):
    """Outages added up, each of them whole."""

    outages: int
    downs: int
    """Downs in them: a burst has several."""
    down_seconds: Seconds
    """Of those whose end is known."""
    endless: int
    """Those whose end is not known: open, or lost."""


class WorstPort(msgspec.Struct, frozen=True):
    port: str
    flaps: TallyItem


class SummaryItem(msgspec.Struct, frozen=True):
    since: str
    until: str
    flaps: TallyItem
    by_cause: dict[str, TallyItem]
    by_port: dict[str, dict[str, TallyItem]]
    """Port -> cause."""
    worst_ports: list[WorstPort]
    """By downs that the fabric caused."""


def summary_item(summary: Summary, since_unix_ns: int, until_unix_ns: int) -> SummaryItem:
    return SummaryItem(
        since=rfc3339(since_unix_ns),
        until=rfc3339(until_unix_ns),
        flaps=_tally(summary.total),
        by_cause=_tallies(summary.by_cause),
        by_port={port: _tallies(causes) for port, causes in summary.by_port.items()},
        worst_ports=[WorstPort(port, _tally(tally)) for port, tally in summary.worst_ports(_WORST)],
    )


def _tallies(tallies: dict[str, Tally]) -> dict[str, TallyItem]:
    return {name: _tally(tally) for name, tally in tallies.items()}


def _tally(tally: Tally) -> TallyItem:
    seconds = Seconds(tally.down_ns_min / SECOND_NS, tally.down_ns_max / SECOND_NS)
    return TallyItem(tally.outages, tally.downs, seconds, tally.endless)
