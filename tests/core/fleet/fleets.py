"""A fleet as it would tell: a job of 1,024 GPUs on 128 nodes, of which some are told of."""

from collections.abc import Iterable
from typing import Any

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.fleet import FleetView, Topology
from flapd.model.event import Event, Outage
from flapd.model.fault import Fault
from flapd.model.fleet import FLEET_VERSION, ClockState, Heartbeat, NodeEvent, PortState
from flapd.model.incident import Incident
from flapd.model.job import Job
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS
from tests.core.incident import parts
from tests.core.incident.parts import DAY, ns

CLUSTER = "default"
LATER = 6000.0
"""By then all is over."""


def node(number: int) -> str:
    return f"node{number}"


def key(number: int, port: int) -> str:
    return f"b83f:d203:{number:04x}:{port + 1:04x}/1"


def job(number: int, name: str = "4711", **known: Any) -> Job:
    ports = {key(number, port): "queue_pair" for port in range(8)}
    told = {"id": f"job-{name}-{number}", "node": node(number), "ports": ports}
    return parts.job(name, **(told | known))


def outage(number: int, at: float, seconds: float | None, port: int = 0, **known: Any) -> Outage:
    own = key(number, port)
    told = {"id": f"flap-{number}-{port}-{at:g}", "node": node(number), "key": own}
    return parts.outage(at, seconds, port, **(told | {"guid": own[:-2]} | known))


def stall(number: int, at: float, seconds: float | None, **known: Any) -> Stall:
    ports = tuple(key(number, port) for port in range(8))
    told = {"id": f"stall-{number}-{at:g}", "node": node(number), "ports": ports}
    return parts.stall(at, seconds, **(told | {"stall_class": "remote"} | known))


def stopped_by(number: int, at: float, seconds: float | None, **known: Any) -> Stall:
    """As the node knows it whose own link went."""
    return stall(number, at, seconds, **({"stall_class": "local_link"} | known))


def timeout(number: int, at: float, **known: Any) -> Fault:
    return parts.timeout(at, **(_of(number, "timeout", at) | known))


def transport_error(number: int, at: float, **known: Any) -> Fault:
    return parts.transport_error(at, **(_of(number, "error", at) | known))


def counted(number: int, at: float) -> Fault:
    """By its port, which knows of no job."""
    own = {"job": None, "hca": "mlx5_3", "port": 1, "node": node(number)}
    return parts.fault("counter", at, **own)


def _of(number: int, kind: str, at: float) -> dict[str, Any]:
    host = node(number)
    return {"id": f"fault-{kind}-{number}-{at:g}", "node": host, "host": host, "rank": 8 * number}


def told(*events: Event) -> list[NodeEvent]:
    return [
        NodeEvent(FLEET_VERSION, CLUSTER, event.node, seq, event)
        for seq, event in enumerate(events, 1)
    ]


def beat(number: int, at: float, ahead: float = 0.0, **known: Any) -> Heartbeat:
    """Sent at this moment, by a clock that is so far ahead."""
    ports = tuple(
        PortState(
            key=key(number, port),
            port=f"mlx5_{port}/1",
            guid=key(number, port)[:-2],
            up=True,
            watched=True,
            readable=True,
            witness="live",
            flapping=False,
            maintenance=False,
            grace=False,
        )
        for port in range(8)
    )
    said: dict[str, Any] = {
        "version": FLEET_VERSION,
        "cluster": CLUSTER,
        "node": node(number),
        "flapd": "0",
        "boot": "boot1",
        "sent_unix_ns": ns(at + ahead),
        "sent_monotonic_ns": round((DAY + at) * SECOND_NS),
        "every_seconds": 30.0,
        "clock": ClockState(True, 0.0, 0.001, 0.5),
        "last_seq": 1,
        "acknowledged_seq": 1,
        "not_ready": (),
        "blind_to": (),
        "ports": ports,
        "jobs": ("4711",),
        "faults": {},
    }
    return Heartbeat(**(said | known))


def view(topology: Topology | None = None) -> FleetView:
    return FleetView(CLUSTER, JobSettings(), CostSettings(), topology)


def watched(
    fleet: FleetView, numbers: Iterable[int], ahead: dict[int, float] | None = None
) -> None:
    """Heartbeats of these nodes from long before, and after all is over."""
    for number in numbers:
        off = (ahead or {}).get(number, 0.0)
        for at in (-7000.0, -6970.0, -6940.0, LATER):
            fleet.beat(beat(number, at, off), ns(at + 0.01))


def final(incidents: Iterable[Incident]) -> list[Incident]:
    """The last revision of each that no other took in, in order of time."""
    latest = {one.id: one for one in incidents}
    hidden = {name for one in latest.values() for name in one.supersedes}
    return sorted(
        (one for one in latest.values() if one.id not in hidden),
        key=lambda one: (one.begin_unix_ns, one.id),
    )


def looked(fleet: FleetView, *events: Event) -> list[Incident]:
    """What is told in the end of what these nodes told."""
    for one in told(*events):
        fleet.hear(one)
    return final(fleet.look(ns(LATER)))
