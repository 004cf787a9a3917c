"""What the commands need of answers about jobs; all else in them is passed over."""

from typing import Any

import msgspec

from flapd.cli.answers import FlapAnswer, Spread


class Money(Spread, frozen=True):
    currency: str = ""


class Lost(Spread, frozen=True):
    """Seconds that each GPU lost; the parts are of the likely loss."""

    stall: float | None = None
    detect: float | None = None
    propagation: float | None = None
    restart: float | None = None
    rework: float | None = None
    assumed_share: float | None = None


class PolicyValue(msgspec.Struct, frozen=True):
    value: Any = None
    low: Any = None
    high: Any = None
    source: str = "not known"


class Cause(msgspec.Struct, frozen=True):
    flap: str
    port: str
    probability: float
    chance: float
    lag_seconds: float
    symptom: str = ""
    rho: float | None = None
    budget_seconds: Spread | None = None
    node: str | None = None


class IncidentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One incident."""

    id: str
    verdict: str
    begin: str | None = None
    end: str | None = None
    open: bool = False
    durable: bool = True
    node: str | None = None
    nodes: list[str] = []
    """Of a fleet's incident those that had part in it."""
    shared_cause: str | None = None
    """What took many ports down at once."""
    job: str | None = None
    regime: str | None = None
    regimes: dict[str, float] = {}
    causes: list[Cause] = []
    affected_gpus: int | None = None
    world_size: int | None = None
    lost_seconds: Lost | None = None
    gpu_seconds: Spread | None = None
    cost: Money | None = None
    policy: dict[str, PolicyValue] = {}
    blind_to: list[str] = []
    explanation: list[str] = []
    advice: list[str] = []
    supersedes: list[str] = []


class IncidentsAnswer(msgspec.Struct, frozen=True):
    """The answer of /incidents."""

    items: list[IncidentAnswer]
    next: str | None = None


class FaultAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    kind: str
    time: str | None = None
    clock_error_seconds: float = 0.0
    primary: bool = False
    rank: int | None = None
    host: str | None = None
    hca: str | None = None
    port: int | None = None
    peer: str | None = None
    op: str | None = None
    seq: int | None = None
    ran_seconds: float | None = None
    event: str | None = None
    status: int | None = None
    repeats: int = 1


class StallAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    job: str
    begin: str | None = None
    end: str | None = None
    seconds: float | None = None
    resolution_seconds: float = 0.0
    node: str | None = None
    stall_class: str = msgspec.field(name="class", default="unknown")
    ports: list[str] = []
    expected_seconds: float = 0.0
    blind_to: list[str] = []


class JobAnswer(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    kind: str | None = None
    world_size: int | None = None
    local_ranks: list[int] = []
    ports: list[str] = []
    since: str | None = None
    remarks: list[str] = []
    blind_to: list[str] = []


class IncidentDetail(IncidentAnswer, frozen=True, kw_only=True):
    """The answer of /incidents/{id}: with its evidence, as far as it is kept."""

    flaps: list[FlapAnswer] = []
    faults: list[FaultAnswer] = []
    stalls: list[StallAnswer] = []
    job_item: JobAnswer | None = None
