"""Metrics: a Snapshot as Prometheus families. What is not known has no sample."""

from collections.abc import Iterable, Iterator

import msgspec
from prometheus_client.core import Metric, UnknownMetricFamily
from prometheus_client.exposition import choose_encoder

from flapd.core.fabric.view import Snapshot
from flapd.serve.agent import Health
from flapd.serve.agent_metrics import agent_families, down_seconds, reading_families
from flapd.serve.bonds import with_members
from flapd.serve.exposition import encode
from flapd.serve.job_metrics import job_families
from flapd.serve.log_metrics import log_families
from flapd.serve.names import named_ports
from flapd.serve.port_metrics import port_families
from flapd.serve.settings import CounterChoice

_OPENMETRICS = "application/openmetrics-text"


class Scrape(msgspec.Struct, frozen=True):
    """Everything one answer is made of."""

    snapshot: Snapshot
    health: Health
    now_ns: int
    """Monotonic."""
    history_bytes: int
    counters: CounterChoice = "errors"
    sees_jobs: bool = False
    """Who asks may see series of jobs."""


def render(scrape: Scrape, accept: str) -> tuple[bytes, str]:
    """The body and its content type: OpenMetrics where `accept` asks for it, else text."""
    return rendered(families(scrape), accept)


def rendered(told: Iterable[Metric], accept: str) -> tuple[bytes, str]:
    _, content_type = choose_encoder(accept)
    if content_type.startswith(_OPENMETRICS):
        return encode(map(_told_apart, told), openmetrics=True), content_type
    return encode(told, openmetrics=False), content_type


def families(scrape: Scrape) -> Iterator[Metric]:
    snapshot, health = scrape.snapshot, scrape.health
    views = named_ports(with_members(snapshot.ports))
    yield from agent_families(health, scrape.history_bytes)
    yield from reading_families(snapshot, views, health, scrape.now_ns)
    yield from port_families(views, scrape.counters)
    yield down_seconds(snapshot.down_histogram)
    yield from job_families(snapshot, views, scrape.sees_jobs)
    yield from log_families(health.job_reader)


def _told_apart(family: Metric) -> Metric:
    """OpenMetrics names a counter without `_total`, and then this one is the histogram's name.

    Of unknown type it keeps its whole name, and so the series is the same in both formats.
    """
    if family.name != "flapd_link_down_seconds" or family.type != "counter":
        return family
    other = UnknownMetricFamily(f"{family.name}_total", family.documentation)
    other.samples = family.samples
    return other
