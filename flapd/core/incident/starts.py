"""Starts: errors that come while a job connects, and ports that were down when it was started.

NCCL passes over a port that is not active then (ncclIbInit in src/transport/net_ib.cc): some
jobs go on without it, others find no way to their peers.
"""

from collections.abc import Iterator

from flapd.core.incident.evidence import begin_ns
from flapd.core.incident.scene import Scene
from flapd.model.event import Outage
from flapd.model.fault import Fault
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS

START_UP_SECONDS = 120.0
"""For so long a job may be connecting."""
FAILED_STARTS_PER_SECOND = 0.1 / START_UP_SECONDS
"""Of starts on a sound fabric one in ten fails, we assume: a route, a GID, a peer not there."""
MISSED_PORT = 0.5
"""The chance that a job cannot start without a port, for want of anything that tells."""

_LOOK_BACK_NS = 3600 * SECOND_NS
"""For what went down before, an incident might be told again when that is forgotten already."""
_START_UP_NS = round(START_UP_SECONDS * SECOND_NS)


def is_of_start(symptom: Fault | Stall, scene: Scene) -> bool:
    """An error of the transport, while the job was connecting."""
    if isinstance(symptom, Stall) or symptom.kind not in ("transport_error", "nccl_error"):
        return False
    return bool(_starts(symptom, scene))


def down_at_start(fault: Fault, scene: Scene) -> Iterator[tuple[Outage, int]]:
    """Outages that a job was started into, on any of its nodes, each with when that was."""
    for node, start_ns in sorted(_starts(fault, scene)):
        for outage in scene.in_order.down_at(node, start_ns):
            if begin_ns(outage) >= start_ns - _LOOK_BACK_NS:
                yield outage, start_ns


def _starts(fault: Fault, scene: Scene) -> set[tuple[str, int]]:
    """Of a node each, not long before the error; unix time."""
    at_ns = fault.time_ns
    if at_ns is None:
        return set()
    return {
        (job.node, job.since_unix_ns)
        for job in scene.jobs
        if job.since_unix_ns <= at_ns <= job.since_unix_ns + _START_UP_NS
    }
