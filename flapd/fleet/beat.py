"""Beat: how a node is, as it tells the fleet."""

import msgspec

from flapd import __version__
from flapd.core.fabric.view import PortView, Snapshot
from flapd.fleet.settings import FleetSettings
from flapd.model.fleet import FLEET_VERSION, ClockState, Heartbeat, PortState

BEAT_SECONDS = 30.0


class Vitals(msgspec.Struct, frozen=True):
    """What a heartbeat is made of besides the outbox."""

    snapshot: Snapshot
    not_ready: tuple[str, ...]
    clock: ClockState | None
    unix_ns: int
    monotonic_ns: int


def heartbeat(
    settings: FleetSettings, node: str, vitals: Vitals, last_seq: int | None, acknowledged_seq: int
) -> Heartbeat:
    snapshot = vitals.snapshot
    return Heartbeat(
        version=FLEET_VERSION,
        cluster=settings.cluster,
        node=node,
        flapd=__version__,
        boot=snapshot.boot,
        sent_unix_ns=vitals.unix_ns,
        sent_monotonic_ns=vitals.monotonic_ns,
        every_seconds=BEAT_SECONDS,
        clock=vitals.clock,
        last_seq=last_seq,
        acknowledged_seq=acknowledged_seq,
        not_ready=vitals.not_ready,
        blind_to=snapshot.jobs.blind_to,
        ports=tuple(_port(view) for view in snapshot.ports if view.present),
        jobs=tuple(job.job for job in snapshot.jobs.running),
        faults=dict(snapshot.jobs.totals.faults),
    )


def _port(view: PortView) -> PortState:
    return PortState(
        key=view.port.key,
        port=view.port.name,
        guid=view.port.guid,
        up=view.up,
        watched=view.watched,
        readable=view.readable,
        witness=view.witness_status,
        flapping=view.flapping,
        maintenance=view.maintenance,
        grace=view.grace,
        link_layer=view.port.link_layer,
    )
