"""Jobs, faults, stalls and incidents as tests need them: only what matters is said."""

import math
from typing import Any

from flapd.model.fault import Fault, Place
from flapd.model.given import Given, exactly
from flapd.model.incident import Cause, Incident
from flapd.model.job import Job
from flapd.model.loss import Parts, Range
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS
from tests.store.outages import WALL_NS, unix


def job(job_id: str = "job-1", revision: int = 0, **changes: Any) -> Job:
    """Of 1024 GPUs, 8 of them here, from second 0 on unless `since`, `until` say else."""
    until = changes.pop("until", None)
    fields: dict[str, Any] = {
        "node": "node17",
        "job": "4711",
        "kind": "training",
        "world_size": exactly(1024, "environment"),
        "local_ranks": tuple(range(8)),
        "gpus": 8,
        "ports": {"0x1/1": "queue_pair"},
        "since_unix_ns": unix(changes.pop("since", 0)),
        "until_unix_ns": None if until is None else unix(until),
        "policy": {
            "ib_timeout": exactly(20, "version"),
            "retry_cnt": exactly(7, "environment"),
            "watchdog_seconds": Given(600.0, 600.0, 1800.0, "default"),
            "heartbeat_seconds": exactly(math.inf, "environment"),
        },
    }
    return Job(id=job_id, revision=revision, **{**fields, **changes})


def fault(fault_id: str = "fault-1", revision: int = 0, **changes: Any) -> Fault:
    """A watchdog's timeout at second 100 unless `at` says else; None: at no known time."""
    at = changes.pop("at", 100)
    fields: dict[str, Any] = {
        "node": "node17",
        "kind": "watchdog_timeout",
        "form": "watchdog_timeout",
        "text": "Watchdog caught collective operation timeout",
        "time_ns": None if at is None else unix(at),
        "clock_error_ns": 0,
        "job": "4711",
        "rank": 3,
        "host": "node17",
        "pid": 4242,
        "source": Place("/var/log/train.log", 1024),
    }
    return Fault(id=fault_id, revision=revision, **{**fields, **changes})


def stall(stall_id: str = "stall-1", revision: int = 0, **changes: Any) -> Stall:
    """From second 10 to second 14.4 unless `begin`, `end` say else."""
    begin, end = changes.pop("begin", 10), changes.pop("end", 14.4)
    fields: dict[str, Any] = {
        "node": "node17",
        "job": "4711",
        "begin_ns": round(begin * SECOND_NS),
        "end_ns": None if end is None else round(end * SECOND_NS),
        "resolution_ns": SECOND_NS // 10,
        "stall_class": "local_link",
        "ports": ("0x1/1",),
        "expected_seconds": 0.0,
        "wall_offset_ns": WALL_NS,
    }
    return Stall(id=stall_id, revision=revision, **{**fields, **changes})


def cause(flap: str = "a", **changes: Any) -> Cause:
    fields: dict[str, Any] = {
        "port": "mlx5_0/1",
        "key": "0x1/1",
        "node": "node17",
        "probability": 0.98,
        "chance": 0.0119,
        "lag_seconds": 0.1,
        "symptom": "stall-1",
    }
    return Cause(flap=flap, **{**fields, **changes})


def incident(incident_id: str = "incident-1", revision: int = 0, **changes: Any) -> Incident:
    """A stall of 4.4 s that a flap caused, from second 10 to second 15 unless changed."""
    begin, end = changes.pop("begin", 10), changes.pop("end", 15)
    fields: dict[str, Any] = {
        "node": "node17",
        "job": "4711",
        "begin_unix_ns": unix(begin),
        "end_unix_ns": None if end is None else unix(end),
        "open": end is None,
        "verdict": "caused",
        "blind_to": (),
        "regime": "absorbed",
        "regimes": {"absorbed": 0.98, "hidden": 0.02},
        "causes": (cause(),),
        "symptoms": ("stall-1",),
        "world_size": 1024,
        "affected_gpus": 1024,
        "lost_seconds": Range(4.3, 4.4, 4.5),
        "parts": Parts(stall=4.4),
        "assumed_share": 0.0,
        "gpu_seconds": Range(4403.2, 4505.6, 4608.0),
        "cost": Range(3.06, 3.13, 3.2),
        "currency": "USD",
        "policy": job().policy,
        "explanation": ("Port mlx5_0/1 went down for 2 s and traffic of job 4711 stood still.",),
        "advice": ("Leave the timeout as it is.",),
        "flap_gpu_seconds": {"a": Range(4403.2, 4505.6, 4608.0)},
    }
    return Incident(id=incident_id, revision=revision, **{**fields, **changes})
