"""Beats: how each node of a fleet is at a moment, as its agent tells every 30 s."""

from collections.abc import Collection

from flapd.model.fleet import FLEET_VERSION, ClockState, Heartbeat, PortState
from simulators.cluster.clock import NodeClock
from simulators.cluster.names import guid, node_name, port_key, port_name

BEAT_SECONDS = 30.0


def heartbeat(
    cluster: str,
    node: int,
    clock: NodeClock,
    at: float,
    *,
    ports: int,
    down: Collection[int] = (),
    jobs: tuple[str, ...] = (),
    last_seq: int = 0,
) -> Heartbeat:
    """`down` are the ports of it that are."""
    return Heartbeat(
        version=FLEET_VERSION,
        cluster=cluster,
        node=node_name(node),
        flapd="0",
        boot=f"boot of {node_name(node)}",
        sent_unix_ns=clock.unix(at),
        sent_monotonic_ns=clock.ns(at),
        every_seconds=BEAT_SECONDS,
        clock=ClockState(
            is_synchronized=True,
            offset_seconds=0.0,
            estimated_error_seconds=0.001,
            largest_error_seconds=1.0,
        ),
        last_seq=last_seq,
        acknowledged_seq=last_seq,
        not_ready=(),
        blind_to=(),
        ports=tuple(_port(node, port, up=port not in down) for port in range(ports)),
        jobs=jobs,
        faults={},
    )


def _port(node: int, port: int, *, up: bool) -> PortState:
    return PortState(
        key=port_key(node, port),
        port=port_name(port),
        guid=guid(node, port),
        up=up,
        watched=True,
        readable=True,
        witness="live",
        flapping=False,
        maintenance=False,
        grace=False,
        link_layer="InfiniBand",
    )
