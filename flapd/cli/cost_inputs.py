"""What is asked of the model by options: a question for each combination of what may be a list."""

import argparse
from collections.abc import Iterator
from itertools import product

from flapd.config import Config
from flapd.core.cost.question import Question
from flapd.model.errors import FlapdError

_LISTS = ("ib_timeout", "retry_cnt", "watchdog", "down")


def questions(arguments: argparse.Namespace, config: Config) -> Iterator[Question]:
    """One for each policy and duration asked for; FlapdError where the GPUs are not known."""
    if arguments.gpus is None and config.job.world_size is None:
        raise FlapdError(
            "--gpus W, the number of GPUs that stand still, or job.world_size is needed"
        )
    said = {name: getattr(arguments, name) for name in Question.__struct_fields__}
    lists = {name: said[name] for name in _LISTS if said[name] is not None}
    for chosen in product(*lists.values()):
        yield Question(**(said | dict(zip(lists, chosen, strict=True))))
