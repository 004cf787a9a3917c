"""`flapd budget`: what a step should take, what it takes, and the fabric's part in between."""

import argparse
from collections.abc import Sequence
from datetime import timezone

import msgspec

from flapd.cli.analyze_reading import Zone, read
from flapd.cli.budget_text import print_budget
from flapd.cli.client import NoAgentError, NotServedError, ask
from flapd.cli.output import decoded, note, print_json
from flapd.cli.target import Target
from flapd.config import Config
from flapd.core.cost.step import StepTimes, Training, step_times
from flapd.core.cost.step_fabric import Fabric, StepAnswer, step_answer
from flapd.model.errors import FlapdError
from flapd.model.finding import Step


def budget(arguments: argparse.Namespace, targets: Sequence[Target], config: Config) -> int:
    """The exit status; without an agent the projection alone."""
    gpus = arguments.gpus or config.job.world_size
    if gpus is None:
        raise FlapdError("--gpus W, the number of GPUs of the job, or job.world_size is needed")
    times = None if arguments.log is None else _step_times(arguments.log)
    measured = arguments.measured
    if measured is None and times is not None:
        measured = times.all.median
    training = Training(
        parameters=arguments.params,
        tokens_per_step=arguments.tokens,
        gpus=gpus,
        peak_flops=arguments.peak,
    )
    fabric = _fabric(arguments, gpus, targets)
    found = step_answer(training, arguments.mfu, measured, fabric, times)
    if arguments.json:
        print_json(msgspec.json.encode(found))
    else:
        print_budget(found, training, arguments.mfu)
    return 0


def _fabric(arguments: argparse.Namespace, gpus: int, targets: Sequence[Target]) -> Fabric | None:
    """What agent or hub saw in that time; None where there is none."""
    said = {name: getattr(arguments, name) for name in ("until", "job", "node")}
    asked = {
        "params": f"{arguments.params:.17g}",
        "tokens": f"{arguments.tokens:.17g}",
        "gpus": gpus,
        "peak": f"{arguments.peak:.17g}",
        "mfu": f"{arguments.mfu:.17g}",
        "since": arguments.since,
        **{name: value for name, value in said.items() if value is not None},
    }
    try:
        return decoded(ask(targets, "/api/v1/budget", asked), StepAnswer).fabric
    except (NoAgentError, NotServedError) as error:
        if arguments.url is not None:
            raise
        note(f"what the fabric did is not known: {error}")
        return None


def _step_times(names: Sequence[str]) -> StepTimes | None:
    """Of the training's own logs; by rank where several print them."""
    steps = read(names, Zone(timezone.utc), lambda _bytes: None).steps
    by_rank: dict[str, list[float]] = {}
    for one in steps:
        if one.seconds is not None and one.seconds > 0:
            by_rank.setdefault(_who(one), []).append(one.seconds)
    found = step_times(by_rank)
    if found is None:
        note("no step time was found in the logs: give --measured S")
    return found


def _who(step: Step) -> str:
    return "not told" if step.rank is None else str(step.rank)
