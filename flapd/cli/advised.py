"""Advised: everything that is advised for the flaps there were, with its reasons."""

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from flapd.cli.advise_flaps import Seen
from flapd.cli.advise_job import JobAnswer, with_job
from flapd.cli.advise_words import on_draining, on_timeout
from flapd.config import Config
from flapd.core.cost.best_timeout import Advice, best_timeout
from flapd.core.cost.case import Case
from flapd.core.cost.drain import drain_gpu_seconds
from flapd.core.cost.durations import Durations, Length, durations
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.plan import Asked, Down, Draining, draining, most_drains
from flapd.core.cost.price import price
from flapd.core.cost.question import Question, checkpoints_of, inputs_of
from flapd.model.errors import CouldNotFindOutError
from flapd.model.given import default, exactly


class Drain(NamedTuple):
    """What a drain would mean."""

    remaining_seconds: float
    """How long the job still runs."""
    idle_gpus: int
    """That wait for the repair; 0 with a spare."""
    repair_seconds: float
    most_nodes: int | None
    """At once; None: by the number of nodes."""


class Advised(msgspec.Struct, frozen=True):
    """What --json prints; what has no end is null."""

    inputs: Inputs
    outages: Durations
    left_out: dict[str, int]
    """Why -> how many."""
    timeout: Advice
    draining: Draining | None
    """None where the number of GPUs is not known."""
    job: str | None
    """Whose timeouts are in force; None: what options, configuration and defaults say."""
    explanation: list[str]


def advised(
    question: Question, drain: Drain, seen: Seen, config: Config, job: JobAnswer | None = None
) -> Advised:
    """By the timeouts of `job`, where there is one.

    CouldNotFindOutError where no outage has a length that is known.
    """
    inputs, knows_gpus = _inputs(question, config, job)
    outages = durations(seen.lengths, question.usable_after or 0.0)
    if not outages.outages:
        raise CouldNotFindOutError("there is no outage whose length is known: nothing to go by")
    case = inputs.likely()
    timeout = best_timeout(case, outages.outages)
    plan = None
    if knows_gpus:
        blocked = checkpoints_of(question, config.job).cost_seconds
        asked = _asked(drain, seen, case, blocked)
        plan = draining(timeout.in_force.expected_seconds * case.gpus, _downs(seen, case), asked)
    return Advised(
        inputs=inputs,
        outages=outages,
        left_out=seen.left_out,
        timeout=timeout,
        draining=plan,
        job=None if job is None else job.job,
        explanation=[*on_timeout(inputs, outages, timeout), *on_draining(plan, timeout)],
    )


def _inputs(question: Question, config: Config, job: JobAnswer | None) -> tuple[Inputs, bool]:
    """And whether anybody knows the number of GPUs; seconds do not depend on it."""
    inputs = inputs_of(replace(question, gpus=question.gpus or 1), config.job, config.cost)
    inputs = replace(inputs, down_seconds=default(0.0, 0.0, 0.0))
    if job is not None:
        inputs = with_job(inputs, job)
    if question.gpus is not None:
        return inputs, True
    if config.job.world_size is not None:
        return replace(inputs, gpus=exactly(config.job.world_size, "configuration")), True
    if job is not None and job.world_size is not None:
        return replace(inputs, gpus=exactly(job.world_size, job.size_source)), True
    return replace(inputs, gpus=default(1, 1, 1)), False


def _asked(drain: Drain, seen: Seen, case: Case, checkpoint_cost_seconds: float) -> Asked:
    return Asked(
        now_seconds=seen.now_seconds,
        span_hours=seen.span_hours,
        drain_gpu_seconds=drain_gpu_seconds(
            gpus=case.gpus,
            checkpoint_cost_seconds=checkpoint_cost_seconds,
            restart_seconds=case.restart_seconds,
            idle_gpus=drain.idle_gpus,
            repair_seconds=drain.repair_seconds,
        ),
        remaining_seconds=drain.remaining_seconds,
        most=drain.most_nodes or most_drains(len(seen.ports_of)),
        ports_of=seen.ports_of,
    )


def _downs(seen: Seen, case: Case) -> list[Down]:
    return [Down(one.node, one.port, one.at_seconds, _lost(case, one.length)) for one in seen.downs]


def _lost(case: Case, length: Length) -> float:
    """By the least that it can have been where the length is not known well."""
    seconds = length.low if length.is_vague else length.likely
    return price(replace(case, down_seconds=seconds)).gpu_seconds
