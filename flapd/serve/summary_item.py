"""SummaryItem: what happened in a span of time, added up."""

import msgspec

from flapd.core.cost.price import HOUR_SECONDS
from flapd.core.cost.settings import CostSettings
from flapd.model.loss import Range
from flapd.model.times import SECOND_NS, rfc3339
from flapd.serve.items import Estimate, Seconds
from flapd.serve.job_items import CostItem
from flapd.serve.told_jobs import cost_item, estimate
from flapd.store.incident_summary import IncidentSummary, IncidentTally
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
    gpu_seconds: Estimate | None
    """That its outages are held to have cost; None where no job is known to have felt them."""


class IncidentTallyItem(msgspec.Struct, frozen=True):
    """Incidents added up, each of them whole."""

    incidents: int
    unpriced: int
    """Those of which nobody knows what they cost."""
    gpu_seconds: Estimate
    """Of the others."""
    cost: CostItem


class IncidentsItem(msgspec.Struct, frozen=True):
    total: IncidentTallyItem
    open: int
    by_verdict: dict[str, IncidentTallyItem]
    by_regime: dict[str, IncidentTallyItem]


class SummaryItem(msgspec.Struct, frozen=True):
    since: str
    until: str
    flaps: TallyItem
    by_cause: dict[str, TallyItem]
    by_port: dict[str, dict[str, TallyItem]]
    """Port -> cause."""
    worst_ports: list[WorstPort]
    """By downs that the fabric caused."""
    incidents: IncidentsItem | None
    """None, as what follows, for those who may not see jobs."""
    gpu_seconds: Estimate | None
    """That outages of ports here are held to have cost."""
    cost: CostItem | None


def summary_item(
    summary: Summary,
    incidents: IncidentSummary | None,
    prices: CostSettings,
    since_unix_ns: int,
    until_unix_ns: int,
) -> SummaryItem:
    """`incidents` is None for those who may not see jobs."""
    claimed = None if incidents is None else incidents.claimed
    by_port = {} if incidents is None else incidents.by_port
    return SummaryItem(
        since=rfc3339(since_unix_ns),
        until=rfc3339(until_unix_ns),
        flaps=_tally(summary.total),
        by_cause=_tallies(summary.by_cause),
        by_port={port: _tallies(causes) for port, causes in summary.by_port.items()},
        worst_ports=[
            WorstPort(port, _tally(tally), estimate(by_port.get(port)))
            for port, tally in summary.worst_ports(_WORST)
        ],
        incidents=None if incidents is None else _incidents(incidents, prices),
        gpu_seconds=estimate(claimed),
        cost=None if claimed is None else _price(claimed, prices),
    )


def _incidents(found: IncidentSummary, prices: CostSettings) -> IncidentsItem:
    def told(tallies: dict[str, IncidentTally]) -> dict[str, IncidentTallyItem]:
        return {name: _incident_tally(tally, prices) for name, tally in tallies.items()}

    total = _incident_tally(found.total, prices)
    return IncidentsItem(total, found.open, told(found.by_verdict), told(found.by_regime))


def _incident_tally(tally: IncidentTally, prices: CostSettings) -> IncidentTallyItem:
    gpu_seconds = tally.gpu_seconds
    told = estimate(gpu_seconds)
    assert told is not None
    return IncidentTallyItem(tally.incidents, tally.unpriced, told, _price(gpu_seconds, prices))


def _price(gpu_seconds: Range, prices: CostSettings) -> CostItem:
    each = prices.price_per_gpu_hour / HOUR_SECONDS
    low, likely, high = gpu_seconds.low, gpu_seconds.likely, gpu_seconds.high
    return cost_item(Range(low * each, likely * each, high * each), prices.currency)


def _tallies(tallies: dict[str, Tally]) -> dict[str, TallyItem]:
    return {name: _tally(tally) for name, tally in tallies.items()}


def _tally(tally: Tally) -> TallyItem:
    seconds = Seconds(tally.down_ns_min / SECOND_NS, tally.down_ns_max / SECOND_NS)
    return TallyItem(tally.outages, tally.downs, seconds, tally.endless)
