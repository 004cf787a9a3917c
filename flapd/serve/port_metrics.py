"""Port metrics: the families that have a sample for each port."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from flapd.core.fabric.catalogue import PHYSICAL_STATE, RATE_MBPS, STATE
from flapd.core.fabric.view import COUNTED_CAUSES, WITNESS_STATUSES, PortView
from flapd.model.port import Port
from flapd.model.times import SECOND_NS, Edge
from flapd.serve.counter_metrics import counter_families
from flapd.serve.labelled import Labels, filled, labels_of
from flapd.serve.settings import CounterChoice

_BYTES_PER_MEGABIT = 125_000


class _Exported(NamedTuple):
    """One port, with labels that several of its families share."""

    view: PortView
    labels: Labels


class _Value(NamedTuple):
    """A family with one sample for each port where it is known."""

    kind: type[GaugeMetricFamily | CounterMetricFamily]
    name: str
    documentation: str
    value: Callable[[PortView], float | None]


def _middle_seconds(edge: Edge | None) -> float | None:
    if edge is None:
        return None
    return (edge.earliest_unix_ns + edge.latest_unix_ns) / 2 / SECOND_NS


def _seconds(span_ns: int | None) -> float | None:
    return None if span_ns is None else span_ns / SECOND_NS


def _rate(view: PortView) -> float | None:
    megabits = view.values.get(RATE_MBPS)
    return None if megabits is None else megabits * _BYTES_PER_MEGABIT


_VALUES = (
    _Value(
        GaugeMetricFamily,
        "flapd_port_up",
        "1 where the port can be used, 0 where it is down.",
        lambda view: view.up,
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_port_watched",
        "1 where the port is found and was up at some time, 0 where it is gone or only listed.",
        lambda view: view.watched,
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_port_readable",
        "1 where what tells of the link was read, and not long ago.",
        lambda view: view.readable,
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_port_state_id",
        "State of the port: 0 NOP, 1 DOWN, 2 INIT, 3 ARMED, 4 ACTIVE, 5 ACTIVE_DEFER.",
        lambda view: view.values.get(STATE),
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_port_physical_state_id",
        "Physical state: 1 Sleep, 2 Polling, 3 Disabled, 4 Training, 5 LinkUp, "
        "6 LinkErrorRecovery, 7 Phy Test.",
        lambda view: view.values.get(PHYSICAL_STATE),
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_port_rate_bytes_per_second",
        "Signalling rate of the port.",
        _rate,
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_port_bit_error_ratio",
        "Symbol errors left after correction by bits, of the last 12 minutes.",
        lambda view: view.bit_error_ratio,
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_port_downgraded",
        "1 where the port is up and slower than it should be.",
        lambda view: view.downgraded,
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_port_maintenance",
        "1 while planned work goes on at the port.",
        lambda view: view.maintenance,
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_port_boot_grace",
        "1 soon after a boot, when downs are recorded and not alerted.",
        lambda view: view.grace,
    ),
    _Value(
        CounterMetricFamily,
        "flapd_link_flaps",
        "Outages shorter than a drop that ended by themselves.",
        lambda view: view.totals.flaps,
    ),
    _Value(
        CounterMetricFamily,
        "flapd_link_drops",
        "Outages long enough to be a drop.",
        lambda view: view.totals.drops,
    ),
    _Value(
        CounterMetricFamily,
        "flapd_link_down_seconds",
        "Time the port was down in closed outages.",
        lambda view: view.totals.down_ns / SECOND_NS,
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_link_last_down_timestamp_seconds",
        "Unix time at which the port last went down.",
        lambda view: _middle_seconds(view.last_down),
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_link_last_down_seconds",
        "Down time of the last closed outage.",
        lambda view: _seconds(view.last_down_ns),
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_link_down_since_timestamp_seconds",
        "Unix time at which the port went down that is down now; 0 where no outage is open.",
        lambda view: _middle_seconds(view.down_since) or 0,
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_link_flapping",
        "1 from when the penalty of the port passed flap.suspect until it falls to flap.clear.",
        lambda view: view.flapping,
    ),
    _Value(
        GaugeMetricFamily,
        "flapd_link_penalty",
        "What the downs of the port add up to; falls to half in flap.half_life.",
        lambda view: view.penalty,
    ),
    _Value(
        CounterMetricFamily,
        "flapd_port_counter_resets",
        "Times the counter of downs was found lower than before.",
        lambda view: view.witness_resets,
    ),
)


def port_families(
    views: Iterable[PortView], counters: CounterChoice = "errors"
) -> Iterator[Metric]:
    """Families with at least one sample; each view is of another port."""
    ports = [_Exported(view, labels_of(view)) for view in views]
    families = (_all_families(ports), counter_families((port.view for port in ports), counters))
    for family in chain(*families):
        if family.samples:
            yield family


def _all_families(ports: list[_Exported]) -> Iterator[Metric]:
    yield _info(ports)
    for described in _VALUES:
        yield _valued(ports, described)
    yield _downs(ports)
    yield _witness_status(ports)


def _info(ports: list[_Exported]) -> Metric:
    return filled(
        GaugeMetricFamily("flapd_port_info", "1, with what the port is known by."),
        ((exported.labels | _attributes(exported.view.port), 1) for exported in ports),
    )


def _attributes(port: Port) -> Labels:
    return {
        "guid": port.guid or "",
        "pci": port.pci or "",
        "netdev": port.netdev or "",
        "link_layer": port.link_layer,
        "driver": port.driver or "",
    }


def _valued(ports: list[_Exported], described: _Value) -> Metric:
    values = ((exported.labels, described.value(exported.view)) for exported in ports)
    return filled(
        described.kind(described.name, described.documentation),
        ((labels, value) for labels, value in values if value is not None),
    )


def _downs(ports: list[_Exported]) -> Metric:
    return filled(
        CounterMetricFamily("flapd_link_downs", "Times the port went down, by what did it."),
        (
            (exported.labels | {"cause": cause}, exported.view.totals.downs.get(cause, 0))
            for exported in ports
            for cause in COUNTED_CAUSES
        ),
    )


def _witness_status(ports: list[_Exported]) -> Metric:
    return filled(
        GaugeMetricFamily(
            "flapd_link_witness_status",
            "1 at what can be said of the counter that counts the downs of the port.",
        ),
        (
            (exported.labels | {"status": status}, exported.view.witness_status == status)
            for exported in ports
            for status in WITNESS_STATUSES
        ),
    )
