"""Job rows: jobs, faults, stalls and incidents as the history's columns see them."""

from typing import Any

from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.model.job import Job
from flapd.model.stall import Stall
from flapd.store.span import OPEN_END_UNIX_NS, UNKNOWN_END_UNIX_NS, class_of

_ANY_TIME_UNIX_NS = -(2**63)


def job_facet(job: Job) -> dict[str, Any]:
    return {"kind": job.kind, **_class(job_row(job))}


def job_row(job: Job) -> dict[str, Any]:
    return {"node": job.node, "job": job.job, **_span(job.since_unix_ns, job.until_unix_ns)}


def fault_facet(fault: Fault) -> dict[str, Any]:
    return {"kind": fault.kind, **_class(fault_row(fault))}


def fault_row(fault: Fault) -> dict[str, Any]:
    """It lies anywhere between the ends of its error; one without a time may be of any time."""
    who = {
        "node": fault.node,
        "job": fault.job,
        "rank": fault.rank,
        "host": fault.host,
        "merged_into": fault.merged_into,
    }
    if fault.time_ns is None:
        span = {"begin_unix_ns": _ANY_TIME_UNIX_NS, "end_unix_ns": UNKNOWN_END_UNIX_NS}
        return {**who, "at_unix_ns": 0, **span}
    first_ns, last_ns = fault.time_ns - fault.clock_error_ns, fault.time_ns + fault.clock_error_ns
    return {**who, "at_unix_ns": fault.time_ns, **_span(first_ns, last_ns)}


def stall_facet(stall: Stall) -> dict[str, Any]:
    return {"stall_class": stall.stall_class, **_class(stall_row(stall))}


def stall_row(stall: Stall) -> dict[str, Any]:
    return {"node": stall.node, "job": stall.job, **_span(stall.begin_unix_ns, stall.end_unix_ns)}


def incident_facet(incident: Incident) -> dict[str, Any]:
    return {
        "verdict": incident.verdict,
        "regime": incident.regime or "",
        "status": incident_status(incident),
        **_class(incident_row(incident)),
    }


def incident_row(incident: Incident) -> dict[str, Any]:
    end_ns = incident.end_unix_ns or incident.begin_unix_ns
    loss = incident.gpu_seconds
    return {
        "job": incident.job,
        **_span(incident.begin_unix_ns, None if incident.open else end_ns),
        "gpu_low": None if loss is None else loss.low,
        "gpu_likely": None if loss is None else loss.likely,
        "gpu_high": None if loss is None else loss.high,
    }


def incident_status(incident: Incident) -> str:
    return "open" if incident.open else "closed"


def _span(begin_unix_ns: int, end_unix_ns: int | None) -> dict[str, int]:
    """A wall clock that was set back meanwhile makes no end before the beginning."""
    end_ns = OPEN_END_UNIX_NS if end_unix_ns is None else max(begin_unix_ns, end_unix_ns)
    return {"begin_unix_ns": begin_unix_ns, "end_unix_ns": end_ns}


def _class(row: dict[str, Any]) -> dict[str, int]:
    return {"length_class": class_of(row["begin_unix_ns"], row["end_unix_ns"])}
