"""What is told of jobs, faults, stalls and incidents: items made of events."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from flapd.core.fabric.view import Snapshot
from flapd.model.fault import Fault
from flapd.model.given import Given
from flapd.model.incident import Cause, Incident
from flapd.model.job import Job
from flapd.model.loss import Parts, Range
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS, rfc3339
from flapd.serve.items import Estimate
from flapd.serve.job_items import (
    CauseItem,
    CostItem,
    FaultItem,
    GivenItem,
    IncidentItem,
    JobItem,
    LostItem,
    SourceItem,
    StallItem,
)

PortNames = Mapping[str, str]
"""By key; a port that is not known any more is told by its key."""

Naming = Callable[[str], PortNames]
"""Of the ports of a node."""

_PARTS = ("stall", "detect", "propagation", "restart", "rework")


def port_names(snapshot: Snapshot) -> PortNames:
    return {view.port.key: view.port.name for view in snapshot.ports}


def naming_of(snapshot: Snapshot) -> Naming:
    """Of the one node that this is of."""
    names = port_names(snapshot)
    return lambda _node: names


def job_item(job: Job, names: PortNames, *, durable: bool = True) -> JobItem:
    size = job.world_size
    uses = {names.get(key, key): use for key, use in job.ports.items()}
    return JobItem(
        durable=durable,
        id=job.id,
        revision=job.revision,
        node=job.node,
        job=job.job,
        kind=job.kind,
        world_size=None if size is None else size.value,
        world_size_source=None if size is None else size.source,
        local_ranks=list(job.local_ranks),
        gpus=job.gpus,
        ports=sorted(uses),
        port_uses=dict(uses),
        since=time_of(job.since_unix_ns),
        until=time_of(job.until_unix_ns),
        policy=_policy(job.policy),
        remarks=list(job.remarks),
        blind_to=list(job.blind_to),
    )


def fault_item(fault: Fault, *, durable: bool = True) -> FaultItem:
    place = fault.source
    return FaultItem(
        durable=durable,
        id=fault.id,
        revision=fault.revision,
        time=time_of(fault.time_ns),
        logged_time=time_of(fault.logged_ns),
        arrived=time_of(fault.arrived_ns),
        clock_error_seconds=fault.clock_error_ns / SECOND_NS,
        started=time_of(fault.started_ns),
        source=None if place is None else SourceItem(place.file, place.offset),
        **{name: getattr(fault, name) for name in _AS_IT_IS},
    )


_AS_IT_IS = (
    *("node", "kind", "form", "primary", "consequence", "rank", "group_rank", "process_group"),
    *("op", "seq"),
    *("timeout_seconds", "ran_seconds", "hca", "port", "peer", "event", "status", "vendor"),
    *("host", "pid", "job", "repeats", "merged_into", "text"),
)


def stall_item(stall: Stall, names: PortNames, *, durable: bool = True) -> StallItem:
    return StallItem(
        durable=durable,
        id=stall.id,
        revision=stall.revision,
        node=stall.node,
        job=stall.job,
        begin=time_of(stall.begin_unix_ns),
        end=time_of(stall.end_unix_ns),
        seconds=stall.seconds,
        resolution_seconds=stall.resolution_ns / SECOND_NS,
        stall_class=stall.stall_class,
        ports=[names.get(key, key) for key in stall.ports],
        expected_seconds=stall.expected_seconds,
        blind_to=list(stall.blind_to),
    )


def incident_fields(incident: Incident) -> dict[str, Any]:
    """Of an IncidentItem, and of whatever has more fields than that."""
    return {
        "id": incident.id,
        "revision": incident.revision,
        "node": incident.node,
        "begin": time_of(incident.begin_unix_ns),
        "end": time_of(incident.end_unix_ns),
        "open": incident.open,
        "job": incident.job,
        "verdict": incident.verdict,
        "blind_to": list(incident.blind_to),
        "regime": incident.regime,
        "regimes": dict(incident.regimes),
        "causes": [_cause(cause, incident) for cause in incident.causes],
        "symptoms": list(incident.symptoms),
        "world_size": incident.world_size,
        "affected_gpus": incident.affected_gpus,
        "lost_seconds": _lost(incident),
        "gpu_seconds": estimate(incident.gpu_seconds),
        "cost": None if incident.cost is None else cost_item(incident.cost, incident.currency),
        "policy": _policy(incident.policy),
        "explanation": list(incident.explanation),
        "advice": list(incident.advice),
        "supersedes": list(incident.supersedes),
        "nodes": list(incident.nodes),
        "jobs": list(incident.jobs),
        "shared_cause": incident.shared_cause,
    }


def incident_item(incident: Incident, *, durable: bool = True) -> IncidentItem:
    return IncidentItem(durable=durable, **incident_fields(incident))


def _cause(cause: Cause, incident: Incident) -> CauseItem:
    return CauseItem(
        flap=cause.flap,
        port=cause.port,
        node=cause.node,
        probability=cause.probability,
        chance=cause.chance,
        lag_seconds=cause.lag_seconds,
        symptom=cause.symptom,
        rho=_finite(cause.rho),
        budget_seconds=estimate(cause.budget_seconds),
        gpu_seconds=estimate(incident.flap_gpu_seconds.get(cause.flap)),
    )


def _lost(incident: Incident) -> LostItem | None:
    lost = incident.lost_seconds
    if lost is None:
        return None
    return LostItem(
        low=_finite(lost.low),
        likely=_finite(lost.likely),
        high=_finite(lost.high),
        assumed_share=_finite(incident.assumed_share),
        **_parts(incident.parts),
    )


def _parts(parts: Parts | None) -> dict[str, float | None]:
    return {name: None if parts is None else _finite(getattr(parts, name)) for name in _PARTS}


def cost_item(cost: Range, currency: str) -> CostItem:
    return CostItem(_finite(cost.low), _finite(cost.likely), _finite(cost.high), currency)


def estimate(found: Range | None) -> Estimate | None:
    if found is None:
        return None
    return Estimate(_finite(found.low), _finite(found.likely), _finite(found.high))


def _policy(policy: Mapping[str, Given[Any]]) -> dict[str, GivenItem]:
    return {
        name: GivenItem(_finite(given.value), _finite(given.low), _finite(given.high), given.source)
        for name, given in policy.items()
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def time_of(unix_ns: int | None) -> str | None:
    """None also where the calendar does not reach: a log may claim any year."""
    try:
        return None if unix_ns is None else rfc3339(unix_ns)
    except OverflowError:
        return None
