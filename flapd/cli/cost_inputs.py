"""What `flapd cost` reckons with: a question for each combination of what may be a list."""

import argparse
from collections.abc import Iterator
from itertools import product

from flapd.config import Config
from flapd.core.cost.inputs import CHECKPOINT_INTERVAL_SECONDS, Inputs
from flapd.core.cost.question import Question, inputs_of
from flapd.core.cost.repeated import Checkpoints
from flapd.core.cost.settings import JobSettings
from flapd.model.errors import FlapdError

CHECKPOINT_COST_SECONDS = 30.0

_LISTS = ("ib_timeout", "retry_cnt", "watchdog", "down")


def all_inputs(arguments: argparse.Namespace, config: Config) -> list[Inputs]:
    """One for each policy and duration asked for; FlapdError where the GPUs are not known."""
    if arguments.gpus is None and config.job.world_size is None:
        raise FlapdError(
            "--gpus W, the number of GPUs that stand still, or job.world_size is needed"
        )
    return [inputs_of(question, config.job, config.cost) for question in _questions(arguments)]


def _questions(arguments: argparse.Namespace) -> Iterator[Question]:
    said = {name: getattr(arguments, name) for name in Question.__struct_fields__}
    lists = {name: said[name] for name in _LISTS if said[name] is not None}
    for chosen in product(*lists.values()):
        yield Question(**(said | dict(zip(lists, chosen, strict=True))))


def checkpoints_of(arguments: argparse.Namespace, job: JobSettings) -> Checkpoints:
    """How often the job saves, and how long that blocks it."""
    configured = (
        CHECKPOINT_INTERVAL_SECONDS
        if job.checkpoint_interval is None
        else job.checkpoint_interval.seconds
    )
    cost = arguments.checkpoint_cost
    return Checkpoints(
        interval_seconds=arguments.checkpoint_interval or configured,
        cost_seconds=CHECKPOINT_COST_SECONDS if cost is None else cost,
    )
