"""What `flapd cost` reckons with: options, else the configuration, presets, versions, defaults."""

import argparse
from collections.abc import Iterator
from itertools import product
from typing import Any

from msgspec.structs import replace

from flapd.config import Config
from flapd.core.cost.given import Given, exactly
from flapd.core.cost.inputs import CHECKPOINT_INTERVAL_SECONDS, Inputs, checkpoint_age
from flapd.core.cost.releases import Releases, with_releases
from flapd.core.cost.repeated import Checkpoints
from flapd.core.cost.restart import with_restart
from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.model.duration import Duration
from flapd.model.errors import FlapdError

CHECKPOINT_COST_SECONDS = 30.0

_OPTIONS = {
    "gpus": "gpus",
    "usable_after_seconds": "usable_after",
    "timer_floor": "timer_floor",
    "budget_factor": "budget_factor",
    "schedule": "schedule",
    "failover_slowdown": "slowdown",
    "slack_seconds": "slack",
    "enqueued_seconds": "enqueued_before",
    "propagation_seconds": "propagation",
    "restart_seconds": "restart",
    "checkpoint_age_seconds": "checkpoint_age",
    "price_per_gpu_hour": "price",
}
_FLAGS = {
    "hang": ("hang", True),
    "failover": ("failover", True),
    "coordinated": ("uncoordinated", False),
    "extra_tries": ("first_try_counts", 1),
}
_SETTINGS = {
    "gpus": "world_size",
    "ib_timeout": "ib_timeout",
    "retry_cnt": "ib_retry_cnt",
    "timer_floor": "timer_floor",
    "budget_factor": "budget_factor",
    "slack_seconds": "slack",
    "watchdog_seconds": "watchdog",
    "propagation_seconds": "propagation",
    "restart_seconds": "restart",
}


def all_inputs(arguments: argparse.Namespace, config: Config) -> list[Inputs]:
    """One for each policy and duration asked for; FlapdError where the GPUs are not known."""
    common = _configured(config.job, config.cost) | _given(arguments)
    if "gpus" not in common:
        raise FlapdError(
            "--gpus W, the number of GPUs that stand still, or job.world_size is needed"
        )
    return [
        _complete(arguments, common | varied | {"down_seconds": exactly(down, "option")})
        for varied in _policies(arguments)
        for down in arguments.down
    ]


def _complete(arguments: argparse.Namespace, said: dict[str, Given[Any]]) -> Inputs:
    """What somebody said, over what the presets say, over the defaults."""
    inputs = Inputs(gpus=said["gpus"], down_seconds=said["down_seconds"])
    if arguments.preset is not None:
        inputs = with_restart(inputs, arguments.preset)
    releases = Releases(
        arguments.nccl, arguments.torch, arguments.launcher, arguments.error_handling
    )
    return with_releases(replace(inputs, **said), releases)


def _policies(arguments: argparse.Namespace) -> Iterator[dict[str, Given[Any]]]:
    """Each combination of what may be a list."""
    varied = {
        "ib_timeout": arguments.ib_timeout,
        "retry_cnt": arguments.retry_cnt,
        "watchdog_seconds": arguments.watchdog,
    }
    lists = {name: values for name, values in varied.items() if values is not None}
    for chosen in product(*lists.values()):
        yield {name: exactly(value, "option") for name, value in zip(lists, chosen, strict=True)}


def _given(arguments: argparse.Namespace) -> dict[str, Given[Any]]:
    options = {name: getattr(arguments, option) for name, option in _OPTIONS.items()}
    found = {name: exactly(value, "option") for name, value in options.items() if value is not None}
    for name, (flag, value) in _FLAGS.items():
        if getattr(arguments, flag):
            found[name] = exactly(value, "option")
    if arguments.checkpoint_interval is not None and arguments.checkpoint_age is None:
        interval = exactly(arguments.checkpoint_interval, "option")
        found["checkpoint_age_seconds"] = checkpoint_age(interval)
    return found


def _configured(job: JobSettings, cost: CostSettings) -> dict[str, Given[Any]]:
    settings = {name: _plain(getattr(job, key)) for name, key in _SETTINGS.items()}
    found = {
        name: exactly(value, "configuration")
        for name, value in settings.items()
        if value is not None
    }
    if job.retry_schedule != "auto":
        found["schedule"] = exactly(job.retry_schedule, "configuration")
    if job.checkpoint_interval is not None:
        interval = exactly(job.checkpoint_interval.seconds, "configuration")
        found["checkpoint_age_seconds"] = checkpoint_age(interval)
    if cost.price_per_gpu_hour != CostSettings().price_per_gpu_hour:
        found["price_per_gpu_hour"] = exactly(cost.price_per_gpu_hour, "configuration")
    return found


def _plain(value: Any) -> Any:
    return value.seconds if isinstance(value, Duration) else value


def checkpoints_of(arguments: argparse.Namespace, job: JobSettings) -> Checkpoints:
    """How often the job saves, and how long that blocks it."""
    configured = _plain(job.checkpoint_interval) or CHECKPOINT_INTERVAL_SECONDS
    cost = arguments.checkpoint_cost
    return Checkpoints(
        interval_seconds=arguments.checkpoint_interval or configured,
        cost_seconds=CHECKPOINT_COST_SECONDS if cost is None else cost,
    )
