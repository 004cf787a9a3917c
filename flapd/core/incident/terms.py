"""Terms: what is known of a job that a flap's price and its blame depend on."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from flapd.core.cost.budget import Budget, budget_of
from flapd.core.cost.calibration import Retry, retry_of, with_retry
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.question import Question, inputs_of
from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.incident.attempts import latest
from flapd.model.given import Given, default, exactly
from flapd.model.job import Job

ETHERNET = "Ethernet"
_ADAPTIVE_OR_NOT: Given[Any] = Given("fixed", "adaptive", "fixed", "default")
"""RoCE cards may retry at short intervals of their own; nothing that is read says so."""


class Terms(msgspec.Struct, frozen=True):
    inputs: Inputs
    """Of a flap of no length, until that is put in."""
    world_size: int | None
    affected_gpus: int | None
    """That stand still with it: all of a training job, of others those behind the port."""
    policy: Mapping[str, Given[Any]]
    """The timeouts in force, by the name of the input."""
    budget: Budget
    tick_seconds: float
    retry: Retry | None = None
    """What these are by, where they were measured on this node."""


def terms_of(
    jobs: Sequence[Job],
    layers: frozenset[str],
    job: JobSettings,
    cost: CostSettings,
    retries: Sequence[Retry] = (),
) -> Terms:
    """Of one job by what its nodes say; by settings and defaults where none does.

    `layers` are the link layers of its ports, `retries` what their timers were measured to take.
    """
    jobs = latest(jobs)
    world = _world(jobs, job)
    gpus = _affected(jobs, world)
    # Where nobody knows how many, one stands for them: seconds do not depend on it.
    inputs = inputs_of(Question(down=0.0, gpus=1), job, cost)
    inputs = replace(inputs, gpus=gpus or exactly(1, "measured"))
    policy = jobs[0].policy if jobs else {}
    known = {name: given for name, given in policy.items() if name in Inputs.__struct_fields__}
    inputs = replace(inputs, **known)
    if inputs.schedule.source == "default" and ETHERNET in layers:
        inputs = replace(inputs, schedule=_ADAPTIVE_OR_NOT)
    retry = retry_of(retries, inputs)
    inputs = with_retry(inputs, retry)
    return Terms(
        inputs=inputs,
        world_size=None if world is None else world.value,
        affected_gpus=None if gpus is None else gpus.value,
        policy=policy or _timeouts(inputs),
        budget=budget_of(inputs),
        tick_seconds=inputs.likely().timer.interval_seconds,
        retry=retry,
    )


def _world(jobs: Sequence[Job], job: JobSettings) -> Given[int] | None:
    if job.world_size is not None:
        return exactly(job.world_size, "configuration")
    said = (one.world_size for one in jobs if one.world_size is not None)
    return next(said, None)


def _affected(jobs: Sequence[Job], world: Given[int] | None) -> Given[int] | None:
    here = sum(one.gpus for one in jobs)
    if jobs and jobs[0].kind != "training":
        return exactly(here, "measured") if here else None
    if world is not None:
        return world
    return default(here, here, here) if here else None


def _timeouts(inputs: Inputs) -> dict[str, Given[Any]]:
    names = ("ib_timeout", "retry_cnt", "watchdog_seconds")
    return {name: getattr(inputs, name) for name in names}
