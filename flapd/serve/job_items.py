"""Job items: what the API tells of jobs, field by field. What is not known is None, never 0.

Of a timeout, and of what follows from one, None is what has no end: JSON has no such number.
"""

from typing import Any

import msgspec

from flapd.serve.items import Estimate, FlapItem, Item, Listed


class GivenItem(msgspec.Struct, frozen=True):
    """One value of a policy, the interval it lies in, and who says so."""

    value: Any
    low: Any
    high: Any
    source: str


class JobItem(Item, frozen=True, kw_only=True):
    """A training job, and what of it is on this node."""

    job: str
    kind: str
    world_size: int | None
    world_size_source: str | None
    local_ranks: list[int]
    gpus: int
    ports: list[str]
    port_uses: dict[str, str]
    """Who says that it uses a port."""
    since: str | None
    until: str | None
    policy: dict[str, GivenItem]
    remarks: list[str]
    blind_to: list[str]


class SourceItem(msgspec.Struct, frozen=True):
    """Where it was read."""

    file: str
    offset: int


class FaultItem(Item, frozen=True, kw_only=True):
    """One piece of evidence that a job was hurt."""

    time: str | None
    """The best that is known."""
    logged_time: str | None
    arrived: str | None
    clock_error_seconds: float
    kind: str
    form: str
    primary: bool
    consequence: bool
    rank: int | None
    group_rank: int | None
    process_group: str | None
    op: str | None
    seq: int | None
    timeout_seconds: float | None
    ran_seconds: float | None
    started: str | None
    hca: str | None
    port: int | None
    peer: str | None
    event: str | None
    status: int | None
    vendor: int | None
    host: str | None
    pid: int | None
    job: str | None
    repeats: int
    merged_into: str | None
    source: SourceItem | None
    text: str


class StallItem(Item, frozen=True, kw_only=True):
    """A job's traffic stood still."""

    job: str
    begin: str | None
    end: str | None
    seconds: float | None
    resolution_seconds: float
    stall_class: str = msgspec.field(name="class")
    ports: list[str]
    expected_seconds: float
    blind_to: list[str]


class CauseItem(msgspec.Struct, frozen=True, kw_only=True):
    """A flap that may have done it."""

    flap: str
    port: str
    node: str
    probability: float
    chance: float
    """That a flap of these ports stood there by accident."""
    lag_seconds: float
    symptom: str
    rho: float | None
    budget_seconds: Estimate | None
    gpu_seconds: Estimate | None
    """Its share of the loss."""


class LostItem(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that each GPU lost; the parts are of the likely loss."""

    low: float | None
    likely: float | None
    high: float | None
    stall: float | None
    detect: float | None
    propagation: float | None
    restart: float | None
    rework: float | None
    assumed_share: float | None


class CostItem(msgspec.Struct, frozen=True):
    low: float | None
    likely: float | None
    high: float | None
    currency: str


class IncidentItem(Item, frozen=True, kw_only=True):
    """One story, as its highest revision tells it."""

    begin: str | None
    end: str | None
    open: bool
    job: str | None
    verdict: str
    blind_to: list[str]
    regime: str | None
    regimes: dict[str, float]
    causes: list[CauseItem]
    symptoms: list[str]
    world_size: int | None
    affected_gpus: int | None
    lost_seconds: LostItem | None
    gpu_seconds: Estimate | None
    cost: CostItem | None
    policy: dict[str, GivenItem]
    explanation: list[str]
    advice: list[str]
    supersedes: list[str]
    nodes: list[str]
    """Of a fleet's incident those that had part in it; else empty."""
    jobs: list[str]
    """Likewise all jobs that it hit."""
    shared_cause: str | None
    """What took many ports down at once; null where each went down for itself."""


class IncidentDetail(IncidentItem, frozen=True, kw_only=True):
    """With the evidence itself, as far as it is kept."""

    flaps: list[FlapItem]
    faults: list[FaultItem]
    stalls: list[StallItem]
    job_item: JobItem | None
    """Of the job at that time."""


class JobList(Listed[JobItem], frozen=True):
    """Of /jobs."""


class FaultList(Listed[FaultItem], frozen=True):
    """Of /faults."""


class StallList(Listed[StallItem], frozen=True):
    """Of /stalls."""


class IncidentList(Listed[IncidentItem], frozen=True):
    """Of /incidents."""
