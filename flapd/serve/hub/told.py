"""What a hub tells of nodes and ports: items made of heartbeats."""

import bisect
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from flapd.core.fleet import NodeView, Peer
from flapd.model.event import PortChange
from flapd.model.fleet import Heartbeat, PortState
from flapd.model.times import SECOND_NS, rfc3339
from flapd.serve.hub.items import ChangeItem, ClockItem, FleetPort, NodeItem, PortCounts
from flapd.serve.items import Peer as PeerItem
from flapd.serve.items import Witness
from flapd.serve.told_jobs import Naming, PortNames, time_of


def is_silent(view: NodeView) -> bool:
    return view.health == "unknown"


def node_item(view: NodeView, now_unix_ns: int, sees_jobs: bool) -> NodeItem:
    """Of a silent node all that changes is unknown."""
    beat = view.heartbeat
    heard = None if is_silent(view) else beat
    seen_ns = view.seen_unix_ns
    return NodeItem(
        id=view.node,
        revision=0 if beat is None else beat.last_seq or 0,
        node=view.node,
        health=view.health,
        reasons=list(view.reasons),
        seen=time_of(seen_ns),
        silent_seconds=None if seen_ns is None else max(0, now_unix_ns - seen_ns) / SECOND_NS,
        clock=_clock(view),
        clock_synchronized=None if beat is None else _is_synchronized(beat),
        version=None if beat is None else beat.flapd,
        boot=None if beat is None else beat.boot,
        ports=None if heard is None else port_counts(heard.ports),
        jobs=list(heard.jobs) if heard is not None and sees_jobs else None,
        events_waiting=None if heard is None else _waiting(heard),
        blind_to=list(heard.blind_to) if heard is not None and sees_jobs else None,
    )


def _clock(view: NodeView) -> ClockItem | None:
    clock = view.clock
    return None if clock is None else ClockItem(clock.low, clock.likely, clock.high)


def _is_synchronized(beat: Heartbeat) -> bool | None:
    return None if beat.clock is None else beat.clock.is_synchronized


def _waiting(beat: Heartbeat) -> int | None:
    return None if beat.last_seq is None else max(0, beat.last_seq - beat.acknowledged_seq)


def port_counts(ports: Iterable[PortState]) -> PortCounts:
    watched = [port for port in ports if port.watched]
    states = Counter(port.up for port in watched)
    flapping = sum(port.flapping for port in watched)
    return PortCounts(len(watched), states[True], states[False], states[None], flapping)


def fleet_port(
    view: NodeView, port: PortState, peer: Peer | None, flaps_24h: int | None, now_unix_ns: int
) -> FleetPort:
    """What a silent node last said of its port is not how the port is."""
    silent = is_silent(view)
    device, _, number = port.port.rpartition("/")
    seen_ns = view.seen_unix_ns
    return FleetPort(
        id=port.key,
        node=view.node,
        port=port.port,
        device=device,
        number=int(number),
        guid=port.guid,
        link_layer=port.link_layer or None,
        up=None if silent else port.up,
        watched=port.watched,
        ever_up=True if port.watched else None,
        witness=Witness(None, None, port.witness),
        flapping=None if silent else port.flapping,
        flaps_24h=flaps_24h,
        last_down=None,
        readable=port.readable and not silent,
        stale_seconds=None if seen_ns is None else max(0, now_unix_ns - seen_ns) / SECOND_NS,
        grace=port.grace,
        maintenance=None if silent else port.maintenance,
        peer=None if peer is None else PeerItem(peer.switch, peer.port or None),
    )


def change_item(change: PortChange) -> ChangeItem:
    return ChangeItem(
        id=change.id,
        revision=change.revision,
        node=change.node,
        port=change.port,
        guid=change.guid,
        kind=change.change,
        note=change.note,
        time=rfc3339(change.recorded_ns + change.wall_offset_ns),
    )


def find_node(nodes: Sequence[NodeView], node: str) -> NodeView | None:
    """`nodes` are in order of their names."""
    place = bisect.bisect_left(nodes, node, key=lambda view: view.node)
    return nodes[place] if place < len(nodes) and nodes[place].node == node else None


def naming_of_nodes(nodes: Sequence[NodeView]) -> Naming:
    """Worked out for the nodes that are asked for: there may be thousands."""

    @cache
    def names(node: str) -> PortNames:
        view = find_node(nodes, node)
        beat = None if view is None else view.heartbeat
        return {} if beat is None else {port.key: port.port for port in beat.ports}

    return names
