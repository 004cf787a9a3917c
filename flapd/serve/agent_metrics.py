"""Agent metrics: how the agent itself is, and how reading goes."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.samples import Sample

from flapd import __version__
from flapd.core.fabric.view import DOWN_SECONDS_BUCKETS, DownHistogram, PortView, Snapshot
from flapd.model.fleet import Publishing
from flapd.model.times import SECOND_NS
from flapd.serve.agent import Health, OwnHealth
from flapd.serve.labelled import Labels, filled
from flapd.serve.names import sources_up
from flapd.sources.read_health import READ_SECONDS, Histogram

_TIERS = ("fast", "slow", "rare")
_REASONS = ("EIO", "EINVAL", "ENODEV", "ENOENT", "ETIMEDOUT")
"""What reads of ports fail with most; others are told from their first on."""

_COUNTERS = {
    "flapd_sampler_restarts": "Times the process that reads the ports was started again.",
    "flapd_events_dropped": "Events that the history will never have: memory was full as well.",
    "flapd_observations_refused": "Observations that the engine could not take, a fault of flapd.",
}


def agent_families(health: Health, history_bytes: int) -> Iterator[Metric]:
    yield from own_families(health, history_bytes)
    for name, documentation in _COUNTERS.items():
        yield CounterMetricFamily(name, documentation, getattr(health, name[len("flapd_") :]))
    if health.fleet is not None:
        yield from _fleet_families(health.fleet)


def own_families(health: OwnHealth, history_bytes: int) -> Iterator[Metric]:
    """Of an agent and of a hub alike."""
    build = GaugeMetricFamily(
        "flapd_build_info", "1, with the version of flapd.", labels=["version"]
    )
    build.add_metric([__version__], 1)
    yield build
    yield GaugeMetricFamily(
        "flapd_config_last_reload_successful",
        "1 where the configuration last read was taken, 0 where it was refused.",
        float(health.config_reloaded_ok),
    )
    yield GaugeMetricFamily(
        "flapd_config_restart_needed",
        "1 where some of the configuration last read is not in force until the next start.",
        float(bool(health.restart_needed)),
    )
    yield CounterMetricFamily(
        "flapd_history_write_errors",
        "Commits to the history that failed.",
        health.history_write_errors,
    )
    yield GaugeMetricFamily(
        "flapd_events_not_durable",
        "Events that are shown and not yet on disk.",
        health.events_not_durable,
    )
    yield GaugeMetricFamily("flapd_history_bytes", "Size of the history on disk.", history_bytes)


def _fleet_families(fleet: Publishing) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "flapd_fleet_connected",
        "1 where a server of the fleet is connected and its stream takes what it is told.",
        float(fleet.connected and not fleet.reason),
    )
    yield GaugeMetricFamily(
        "flapd_outbox_events",
        "Entries of the journal that the fleet's stream does not have yet.",
        fleet.outbox_events,
    )
    yield CounterMetricFamily(
        "flapd_outbox_events_lost",
        "Events that the fleet will never be told: the history let go of them first.",
        fleet.events_lost,
    )


def reading_families(
    snapshot: Snapshot, views: Iterable[PortView], health: Health, now_ns: int
) -> Iterator[Metric]:
    """How many ports are read, and how that goes; `views` are the ports as they are shown."""
    present, reads = [view for view in views if view.present], health.reads
    if snapshot.is_scouted:
        yield GaugeMetricFamily(
            "flapd_ports_found", "Ports that discovery finds now.", len(present)
        )
    yield GaugeMetricFamily(
        "flapd_ports_expected",
        "Ports that should be here: as configured, else those that were up at some time.",
        snapshot.ports_expected,
    )
    yield from _sources(present, health.sources)
    devices = sorted({view.port.device for view in present} | set(snapshot.stuck_readers))
    yield _stuck(devices, snapshot, now_ns)
    yield _rings_missing(devices, reads.rings_missing)
    yield _lateness(reads.lateness)
    yield _read_seconds(devices, reads.read_seconds)
    yield _read_errors(devices, reads.errors)


def _sources(present: list[PortView], others: Mapping[str, Mapping[str, str]]) -> Iterator[Metric]:
    source = GaugeMetricFamily(
        "flapd_source_up",
        "1 where the source tells of at least one port, 0 where it tells of none.",
        labels=["source"],
    )
    for name, is_up in sources_up(present, others).items():
        source.add_metric([name], float(is_up))
    if source.samples:
        yield source


def _stuck(devices: list[str], snapshot: Snapshot, now_ns: int) -> Metric:
    since_ns = {device: snapshot.stuck_readers.get(device, now_ns) for device in devices}
    return filled(
        GaugeMetricFamily(
            "flapd_reader_stuck_seconds",
            "Time the reader of a device has waited in one read; 0 where it is not stuck.",
        ),
        (({"device": device}, max(0, now_ns - since_ns[device]) / SECOND_NS) for device in devices),
    )


def _rings_missing(devices: list[str], missing: Mapping[str, int]) -> Metric:
    return filled(
        GaugeMetricFamily(
            "flapd_rings_missing",
            "Rings of a device's ports that could not be made, so that samples are not remembered.",
        ),
        (({"device": device}, missing.get(device, 0)) for device in devices),
    )


def _lateness(histogram: Histogram) -> Metric:
    family = HistogramMetricFamily(
        "flapd_sample_lateness_seconds", "How late the ports were read, of what is read often."
    )
    _add_histogram(family, {}, histogram)
    return family


def _read_seconds(devices: list[str], found: Mapping[tuple[str, str], Histogram]) -> Metric:
    family = HistogramMetricFamily(
        "flapd_read_seconds", "Time it took to read the ports of a device once."
    )
    empty = Histogram.empty(READ_SECONDS)
    for device, tier in sorted(
        {(device, tier) for device in devices for tier in _TIERS} | set(found)
    ):
        labels = {"device": device, "tier": tier}
        _add_histogram(family, labels, found.get((device, tier), empty))
    return family


def _read_errors(devices: list[str], found: Mapping[tuple[str, str], int]) -> Metric:
    known = {(device, reason) for device in devices for reason in _REASONS}
    return filled(
        CounterMetricFamily("flapd_read_errors", "Reads that failed, by reason."),
        (
            ({"device": device, "reason": reason}, found.get((device, reason), 0))
            for device, reason in sorted(known | set(found))
        ),
    )


def down_seconds(histogram: DownHistogram) -> Metric:
    family = HistogramMetricFamily(
        "flapd_link_down_seconds",
        "Closed outages of all ports by the middle of their possible down time.",
    )
    bounds = tuple(float(bound) for bound in DOWN_SECONDS_BUCKETS)
    shown = Histogram(bounds, histogram.counts, histogram.sum_ns / SECOND_NS)
    _add_histogram(family, {}, shown)
    return family


def _add_histogram(family: HistogramMetricFamily, labels: Labels, histogram: Histogram) -> None:
    totals = list(accumulate(histogram.counts))
    for bound, total in zip([*map(str, histogram.bounds), "+Inf"], totals, strict=True):
        family.samples.append(Sample(f"{family.name}_bucket", labels | {"le": bound}, total))
    family.samples.append(Sample(f"{family.name}_count", labels, totals[-1]))
    family.samples.append(Sample(f"{family.name}_sum", labels, histogram.sum_seconds))
