"""Metrics of a hub: what jobs lost, once, and how the hub and the nodes are."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from flapd.core.fleet.nodes import Health
from flapd.serve.agent_metrics import own_families
from flapd.serve.hub.fleet_api import fleet_item, lag_seconds
from flapd.serve.hub.source import HubSource
from flapd.serve.labelled import filled
from flapd.serve.metrics import rendered

KINDS = ("flap", "port", "fault", "stall", "job", "incident")


def render_hub(hub: HubSource, accept: str) -> tuple[bytes, str]:
    """The body and its content type."""
    return rendered(hub_families(hub), accept)


def hub_families(hub: HubSource) -> Iterator[Metric]:
    yield from own_families(hub.health, hub.history.history_bytes())
    yield from _losses(hub)
    yield from _nodes(hub)
    yield from _stream(hub)


def _losses(hub: HubSource) -> Iterator[Metric]:
    totals = hub.fleet.totals
    yield _counted(
        "flapd_gpu_seconds_lost",
        "GPU-seconds that jobs lost by flaps that are blamed for it, each job once.",
        "regime",
        totals.gpu_seconds,
    )
    yield _counted("flapd_incidents", "Incidents that are over.", "verdict", totals.incidents)
    count = fleet_item(hub, sees_jobs=True).incidents_open
    if count is not None:
        yield GaugeMetricFamily("flapd_incident_open", "Incidents that go on.", count)


def _counted(name: str, documentation: str, label: str, counts: Mapping[Any, float]) -> Metric:
    family = CounterMetricFamily(name, documentation)
    return filled(family, (({label: value}, count) for value, count in counts.items()))


def _nodes(hub: HubSource) -> Iterator[Metric]:
    nodes = hub.fleet.nodes
    counts = Counter(view.health for view in nodes)
    yield filled(
        GaugeMetricFamily(
            "flapd_hub_nodes",
            "Nodes that were ever heard of; `unknown` are those that are silent.",
        ),
        (({"health": health}, counts[health]) for health in get_args(Health)),
    )
    waiting = [
        beat.last_seq - beat.acknowledged_seq
        for view in nodes
        if (beat := view.heartbeat) is not None and beat.last_seq is not None
    ]
    yield GaugeMetricFamily(
        "flapd_hub_outbox_events",
        "Entries of the nodes' journals that the stream does not have yet, as they said last.",
        sum(max(0, one) for one in waiting),
    )


def _stream(hub: HubSource) -> Iterator[Metric]:
    state = hub.consuming
    yield GaugeMetricFamily(
        "flapd_fleet_connected",
        "1 where a server of the fleet is connected and its stream can be read.",
        float(state.connected and not state.reason),
    )
    yield _counted(
        "flapd_hub_events",
        "Events of the stream that are on disk here, with those that were there before.",
        "kind",
        {kind: state.events.get(kind, 0) for kind in KINDS},
    )
    yield CounterMetricFamily(
        "flapd_hub_events_missed",
        "Messages that the stream let go of before they were read.",
        state.missed,
    )
    yield CounterMetricFamily(
        "flapd_hub_messages_refused",
        "Messages that are no event of the node under whose name they came, of a newer flapd, "
        "or that could not be taken by a fault of this one.",
        state.refused,
    )
    if state.waiting is not None:
        yield GaugeMetricFamily(
            "flapd_hub_lag_events", "Messages of the stream still to be taken.", state.waiting
        )
    lag = lag_seconds(hub, time.time_ns())
    if lag is not None:
        yield GaugeMetricFamily(
            "flapd_hub_lag_seconds",
            "Age of the last message taken, where others wait or none can be read; else 0.",
            lag,
        )
