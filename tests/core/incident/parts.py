"""Evidence as it would be read: a job of 1,024 GPUs whose eight ports are here."""

from typing import Any

from flapd.core.incident.evidence import Evidence, Watched
from flapd.model.event import Outage
from flapd.model.fault import Fault, FaultKind
from flapd.model.given import Given, exactly
from flapd.model.job import Job
from flapd.model.port import Port
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS, Edge

BEGIN = 1_790_000_000
"""Of the time in which all happens, unix seconds."""
DAY = 86400.0
PORTS = {f"guid{n}/1": Port(f"guid{n}/1", f"mlx5_{n}", 1, "InfiniBand") for n in range(8)}


def ns(seconds: float) -> int:
    return round((BEGIN + seconds) * SECOND_NS)


def edge(at: float, width: float = 0.0) -> Edge:
    return Edge(round(at * SECOND_NS), round((at + width) * SECOND_NS), BEGIN * SECOND_NS)


def outage(at: float, seconds: float | None, port: int = 0, **known: Any) -> Outage:
    """`seconds` None: it goes on."""
    up = None if seconds is None else edge(at + seconds)
    down_ns = None if seconds is None else round(seconds * SECOND_NS)
    told: dict[str, Any] = {
        "id": f"flap-{port}-{at:g}",
        "revision": 1,
        "node": "node7",
        "key": f"guid{port}/1",
        "port": f"mlx5_{port}/1",
        "guid": f"guid{port}",
        "boot": "boot1",
        "kind": "flap",
        "status": "open" if seconds is None else "closed",
        "cause": "link",
        "seen": "observed",
        "layer": "physical",
        "down": edge(at),
        "up": up,
        "count": 1,
        "count_at_least": False,
        "settled": True,
        "evidence": (),
        "recorded_ns": round(at * SECOND_NS),
        "down_ns_min": down_ns,
        "down_ns_max": down_ns,
    }
    return Outage(**(told | known))


def fault(kind: FaultKind, at: float, **known: Any) -> Fault:
    told: dict[str, Any] = {
        "id": f"fault-{kind}-{at:g}",
        "kind": kind,
        "form": "",
        "text": "",
        "time_ns": ns(at),
        "clock_error_ns": 0,
        "node": "node7",
        "job": "4711",
        "primary": True,
    }
    return Fault(**(told | known))


def timeout(at: float, ran: float = 600.097, **known: Any) -> Fault:
    told: dict[str, Any] = {"ran_seconds": ran, "timeout_seconds": 600.0, "rank": 3}
    return fault("watchdog_timeout", at, **(told | known))


def transport_error(at: float, **known: Any) -> Fault:
    return fault("transport_error", at, **({"status": 12, "rank": 3} | known))


def stall(at: float, seconds: float | None, **known: Any) -> Stall:
    told: dict[str, Any] = {
        "id": f"stall-{at:g}",
        "node": "node7",
        "job": "4711",
        "begin_ns": round(at * SECOND_NS),
        "end_ns": None if seconds is None else round((at + seconds) * SECOND_NS),
        "resolution_ns": SECOND_NS // 10,
        "stall_class": "local_link",
        "ports": tuple(PORTS),
        "expected_seconds": 0.0,
        "wall_offset_ns": BEGIN * SECOND_NS,
    }
    return Stall(**(told | known))


def policy(ib_timeout: int = 20, watchdog: float = 600.0, **more: Given[Any]) -> dict[str, Any]:
    return {
        "ib_timeout": exactly(ib_timeout, "environment"),
        "retry_cnt": exactly(7, "log"),
        "watchdog_seconds": exactly(watchdog, "log"),
        "coordinated": exactly(True, "version"),
        **more,
    }


def job(name: str = "4711", **known: Any) -> Job:
    told: dict[str, Any] = {
        "id": f"job-{name}",
        "revision": 1,
        "node": "node7",
        "job": name,
        "kind": "training",
        "world_size": exactly(1024, "environment"),
        "local_ranks": tuple(range(8)),
        "gpus": 8,
        "ports": dict.fromkeys(PORTS, "queue_pair"),
        "since_unix_ns": ns(-DAY),
        "until_unix_ns": None,
        "policy": policy(),
        "stalls_seen_since_unix_ns": ns(-DAY),
        "shortest_stall_seconds": 1.0,
    }
    return Job(**(told | known))


def evidence(*items: Outage | Fault | Stall | Job, **known: Any) -> Evidence:
    """Of a node whose ports were watched for a day and are still."""
    told: dict[str, Any] = {
        "node": "node7",
        "outages": tuple(one for one in items if isinstance(one, Outage)),
        "faults": tuple(one for one in items if isinstance(one, Fault)),
        "stalls": tuple(one for one in items if isinstance(one, Stall)),
        "jobs": tuple(one for one in items if isinstance(one, Job)),
        "ports": PORTS,
        "watched": dict.fromkeys(PORTS, Watched(ns(-DAY), ns(DAY))),
    }
    return Evidence(**(told | known))
