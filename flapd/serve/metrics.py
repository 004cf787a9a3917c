"""Metrics: a Snapshot as Prometheus families. What is not known has no sample."""

from collections.abc import Callable, Iterable, Iterator

import msgspec
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    UnknownMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics import exposition as openmetrics

from flapd import __version__
from flapd.core.fabric.view import DOWN_SECONDS_BUCKETS, DownHistogram, Snapshot
from flapd.model.times import SECOND_NS
from flapd.serve.agent import Health
from flapd.serve.names import named_ports
from flapd.serve.port_metrics import Labelled, Labels, port_families

_OPENMETRICS = "application/openmetrics-text"

_AGENT_HELP = {
    "flapd_sampler_restarts": "Times the process that reads the ports was started again.",
    "flapd_history_write_errors": "Commits to the history that failed.",
    "flapd_observations_refused": "Observations that the engine could not take, a fault of flapd.",
}


class Scrape(msgspec.Struct, frozen=True):
    """Everything one answer is made of."""

    snapshot: Snapshot
    health: Health
    now_ns: int
    """Monotonic."""


class _Families:
    """A collector as prometheus_client wants it."""

    def __init__(self, scrape: Scrape, *, openmetrics: bool) -> None:
        self._scrape = scrape
        self._openmetrics = openmetrics

    def collect(self) -> Iterable[Metric]:
        yield from _agent_families(self._scrape)
        yield from _reader_families(self._scrape)
        views = named_ports(self._scrape.snapshot)
        for family in port_families(views):
            yield _told_apart(family) if self._openmetrics else family
        yield _down_seconds(self._scrape.snapshot.down_histogram)


def render(scrape: Scrape, accept: str) -> tuple[bytes, str]:
    """The body and its content type: OpenMetrics where `accept` asks for it, else text."""
    encode, content_type = choose_encoder(accept)
    if not content_type.startswith(_OPENMETRICS):
        return encode(_Families(scrape, openmetrics=False)), content_type
    # Our names need no escaping. prometheus_client 0.26 finds that out letter by letter for
    # each sample, unless told that any name will do: then it takes half the time.
    families = _Families(scrape, openmetrics=True)
    generate: Callable[..., bytes] = openmetrics.generate_latest
    return generate(families, escaping=openmetrics.ALLOWUTF8), content_type


def _told_apart(family: Metric) -> Metric:
    """OpenMetrics names a counter without `_total`, and then this one is the histogram's name.

    Of unknown type it keeps its whole name, and so the series is the same in both formats.
    """
    if family.name != "flapd_link_down_seconds":
        return family
    other = UnknownMetricFamily(f"{family.name}_total", family.documentation)
    other.samples = family.samples
    return other


def _agent_families(scrape: Scrape) -> Iterator[Metric]:
    health = scrape.health
    build = GaugeMetricFamily(
        "flapd_build_info", "1, with the version of flapd.", labels=["version"]
    )
    build.add_metric([__version__], 1)
    yield build
    yield GaugeMetricFamily(
        "flapd_config_last_reload_successful",
        "1 where the configuration in force is the one last read, 0 where that was refused.",
        float(health.config_reloaded_ok),
    )
    for name, count in (
        ("flapd_sampler_restarts", health.sampler_restarts),
        ("flapd_history_write_errors", health.history_write_errors),
        ("flapd_observations_refused", health.observations_refused),
    ):
        yield CounterMetricFamily(name, _AGENT_HELP[name], count)
    yield GaugeMetricFamily(
        "flapd_events_not_durable",
        "Events that are shown and not yet on disk.",
        health.events_not_durable,
    )


def _reader_families(scrape: Scrape) -> Iterator[Metric]:
    snapshot = scrape.snapshot
    present = [view for view in snapshot.ports if view.present]
    yield GaugeMetricFamily("flapd_ports_found", "Ports that discovery finds now.", len(present))
    if present:
        source = GaugeMetricFamily(
            "flapd_source_up",
            "1 where the source can read at least one port, 0 where it can read none.",
            labels=["source"],
        )
        source.add_metric(["sysfs"], float(any(view.readable for view in present)))
        yield source
    stuck = Labelled(
        GaugeMetricFamily(
            "flapd_reader_stuck_seconds",
            "Time the reader of a device has waited in one read; 0 where it is not stuck.",
        )
    )
    for device in sorted({view.port.device for view in present} | set(snapshot.stuck_readers)):
        since_ns = snapshot.stuck_readers.get(device, scrape.now_ns)
        waited_seconds = max(0, scrape.now_ns - since_ns) / SECOND_NS
        stuck.add(Labels({"device": device}), waited_seconds)
    yield stuck.family


def _down_seconds(histogram: DownHistogram) -> Metric:
    buckets: list[tuple[str, float]] = []
    total = 0
    bounds = [*(str(float(bound)) for bound in DOWN_SECONDS_BUCKETS), "+Inf"]
    for bound, count in zip(bounds, histogram.counts, strict=True):
        total += count
        buckets.append((bound, total))
    return HistogramMetricFamily(
        "flapd_link_down_seconds",
        "Closed outages of all ports by the middle of their possible down time.",
        buckets=buckets,
        sum_value=histogram.sum_ns / SECOND_NS,
    )
