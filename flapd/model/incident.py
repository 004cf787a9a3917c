"""Incident: one story of what hurt a job, whether a link did it, and what it cost."""

from typing import Any, Literal, get_args

import msgspec

from flapd.model.given import Given
from flapd.model.loss import Parts, Range, Regime

Verdict = Literal["caused", "likely", "coincident", "elsewhere", "not_fabric", "no_job", "unknown"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """A flap that may have done it."""

    flap: str
    """Id of the outage."""
    port: str
    key: str
    node: str
    probability: float
    chance: float
    """That a flap of these ports stood there by accident (p0)."""
    lag_seconds: float
    """From the down to the symptom."""
    symptom: str
    """Id of the fault or stall it is held against."""
    rho: float | None = None
    """Lag over the budget, of a transport error."""
    budget_seconds: Range | None = None


class Incident(msgspec.Struct, frozen=True, kw_only=True, tag="incident"):
    """A higher revision replaces a lower."""

    id: str
    revision: int = 0
    node: str
    job: str | None
    begin_unix_ns: int
    end_unix_ns: int | None
    open: bool
    verdict: Verdict
    blind_to: tuple[str, ...]
    """What could not be seen, in words."""
    regime: Regime | None
    """The most likely."""
    regimes: dict[Regime, float]
    causes: tuple[Cause, ...]
    """The most probable first."""
    symptoms: tuple[str, ...]
    """Ids of faults and stalls."""
    world_size: int | None
    affected_gpus: int | None
    lost_seconds: Range | None
    parts: Parts | None
    """Of the likely loss."""
    assumed_share: float | None
    gpu_seconds: Range | None
    cost: Range | None
    currency: str
    policy: dict[str, Given[Any]]
    explanation: tuple[str, ...]
    """Sentences."""
    advice: tuple[str, ...]
    supersedes: tuple[str, ...] = ()
    flap_gpu_seconds: dict[str, Range] = {}
    """Of each outage in it, its share of the loss; what no job felt is not in it."""
    flaps: tuple[str, ...] = ()
    """Ids of the outages in it, whether or not they may have done anything."""
    another_cause: str | None = None
    """Positive evidence that something else than the fabric did it, in words."""
    nodes: tuple[str, ...] = ()
    """Of a fleet's incident those that had part in it, the one to look at first in front (it is
    `node`); empty: one node told it, of itself."""
    jobs: tuple[str, ...] = ()
    """Of a fleet's incident all jobs that it hit; `job` is the only one, or None where several."""
    shared_cause: str | None = None
    """What took many ports down at once, in words; None: each went down for itself."""
