"""`flapd advise`: the best timeout for the flaps there were, and which node to drain for them."""

import argparse
from collections.abc import Sequence
from typing import Any

import msgspec

from flapd.cli.advise_flaps import Seen, of_agent, of_file
from flapd.cli.advise_job import job_of
from flapd.cli.advise_text import print_advice
from flapd.cli.advised import Drain, advised
from flapd.cli.output import print_json
from flapd.cli.target import Target
from flapd.config import Config
from flapd.core.cost.question import Question
from flapd.model.errors import FlapdError


def advise(arguments: argparse.Namespace, targets: Sequence[Target], config: Config) -> int:
    """The exit status; FlapdError where there is nothing to go by."""
    fields = set(Question.__struct_fields__) - {"down"}
    said: dict[str, Any] = {name: getattr(arguments, name) for name in fields}
    drain = Drain(
        arguments.remaining, arguments.idle_gpus, arguments.repair_time, arguments.most_drains
    )
    seen = _seen(arguments, targets)
    job = None if arguments.durations is not None else job_of(targets, arguments.job)
    found = advised(Question(down=0.0, **said), drain, seen, config, job)
    if arguments.json:
        print_json(msgspec.json.encode(found))
    else:
        print_advice(found, config.cost.currency)
    return 0


def _seen(arguments: argparse.Namespace, targets: Sequence[Target]) -> Seen:
    if arguments.durations is None:
        return of_agent(targets, arguments.since, arguments.until)
    for name in ("url", "job"):
        if getattr(arguments, name) is not None:
            raise FlapdError(f"--{name} and --durations do not go together")
    return of_file(arguments.durations)
