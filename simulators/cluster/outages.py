"""Outages: how an agent that reads ten times a second tells of a port's down."""

import random
from collections.abc import Iterator

from msgspec.structs import replace

from flapd.model.event import Kind, Outage, PortChange, port_id
from flapd.model.times import SECOND_NS
from simulators.cluster.clock import NodeClock
from simulators.cluster.links import Down
from simulators.cluster.names import guid, node_name, port_key, port_name
from simulators.cluster.spec import Maintenance
from simulators.cluster.told import Told
from simulators.job.spec import LinkLayer

_EVERY_SECONDS = 0.1
_READ_SECONDS = 0.0002
_UNPROVEN_SECONDS = {"InfiniBand": 0.5, "Ethernet": 0.101}
"""Up to so long before it was seen a port may have gone: since the state was read last, or since
what counted it may lag."""
_SETTLED_SECONDS = 1.1
_DROP_SECONDS = 240.0


def outage_told(down: Down, layer: LinkLayer, clock: NodeClock) -> Iterator[Told]:
    """Its revisions: it opens, is counted, becomes a drop, and closes."""
    rng = random.Random(down.id)
    phase = rng.uniform(0.0, _EVERY_SECONDS)
    seen = _next_read(down.begin, phase)
    back = _next_read(down.end, phase)
    first = _outage(down, layer, clock, seen)
    if back <= seen:
        yield Told(seen + _SETTLED_SECONDS, _unseen(first, clock, seen, back))
        return
    yield Told(seen, first)
    told = first
    if back > seen + _SETTLED_SECONDS:
        told = replace(told, revision=2, settled=True)
        yield Told(seen + _SETTLED_SECONDS, told)
    if back > seen + _DROP_SECONDS:
        told = replace(told, revision=3, kind="drop")
        yield Told(seen + _DROP_SECONDS, told)
    yield Told(back, _closed(told, clock, back))


def maintenance_told(plan: Maintenance, ports: int, clock: NodeClock) -> Iterator[Told]:
    """Of each port concerned, at its begin and at its end."""
    concerned = range(ports) if plan.port is None else (plan.port,)
    spans = ((plan.at_seconds, "begun"), (plan.at_seconds + plan.for_seconds, "over"))
    for at, note in spans:
        for port in concerned:
            yield Told(at, _planned(plan.node, port, note, at, clock))


def _planned(node: int, port: int, note: str, at: float, clock: NodeClock) -> PortChange:
    return PortChange(
        id=port_id(node_name(node), port_key(node, port)),
        revision=1 + round(at),
        node=node_name(node),
        key=port_key(node, port),
        port=port_name(port),
        guid=guid(node, port),
        change="maintenance",
        note=note,
        recorded_ns=clock.ns(at),
        wall_offset_ns=clock.wall_offset_ns,
    )


def _next_read(at: float, phase: float) -> float:
    return (int((at - phase) / _EVERY_SECONDS) + 1) * _EVERY_SECONDS + phase + _READ_SECONDS


def _outage(down: Down, layer: LinkLayer, clock: NodeClock, seen: float) -> Outage:
    kind: Kind = "flap"
    return Outage(
        id=down.id,
        revision=1,
        node=node_name(down.node),
        key=port_key(down.node, down.port),
        port=port_name(down.port),
        guid=guid(down.node, down.port),
        boot=f"boot of {node_name(down.node)}",
        kind=kind,
        status="open",
        cause="maintenance" if down.is_planned else "link",
        seen="observed",
        layer="physical",
        down=clock.edge(seen - _UNPROVEN_SECONDS[layer], seen),
        up=None,
        count=1,
        count_at_least=False,
        settled=False,
        evidence=("witness",),
        recorded_ns=clock.ns(seen),
    )


def _unseen(outage: Outage, clock: NodeClock, seen: float, back: float) -> Outage:
    """It went and came between two readings: both edges lie anywhere in between."""
    longest_ns = outage.down.latest_ns - outage.down.earliest_ns
    return replace(
        outage,
        status="closed",
        seen="unseen",
        settled=True,
        up=replace(outage.down, latest_ns=clock.ns(back)),
        down_ns_min=0,
        down_ns_max=longest_ns,
        recorded_ns=clock.ns(seen + _SETTLED_SECONDS),
    )


def _closed(outage: Outage, clock: NodeClock, back: float) -> Outage:
    up = clock.edge(back - _EVERY_SECONDS - 2 * _READ_SECONDS, back)
    shortest_ns = max(0, up.earliest_ns - outage.down.latest_ns)
    longest_ns = up.latest_ns - outage.down.earliest_ns
    return replace(
        outage,
        revision=outage.revision + 1,
        status="closed",
        kind="drop" if shortest_ns >= _DROP_SECONDS * SECOND_NS else "flap",
        up=up,
        settled=True,
        down_ns_min=shortest_ns,
        down_ns_max=longest_ns,
        recorded_ns=up.latest_ns,
    )
