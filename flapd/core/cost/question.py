"""Question: what is said of one flap and its job, and the inputs of the model that it makes."""

from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from flapd.core.cost.inputs import Inputs, checkpoint_age
from flapd.core.cost.releases import Launcher, Releases, with_releases
from flapd.core.cost.repeated import Checkpoints
from flapd.core.cost.restart import with_restart
from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.cost.timer import Schedule
from flapd.model.duration import Duration
from flapd.model.errors import FlapdError
from flapd.model.given import Given, exactly


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """None, or False, where nothing is said; spans are seconds."""

    down: float
    gpus: int | None = None
    usable_after: float | None = None
    hang: bool = False
    ib_timeout: int | None = None
    retry_cnt: int | None = None
    schedule: Schedule | None = None
    timer_floor: int | None = None
    budget_factor: float | None = None
    first_try_counts: bool = False
    failover: bool = False
    slowdown: float | None = None
    watchdog: float | None = None
    enqueued_before: float | None = None
    slack: float | None = None
    uncoordinated: bool = False
    propagation: float | None = None
    restart: float | None = None
    checkpoint_age: float | None = None
    checkpoint_interval: float | None = None
    checkpoint_cost: float | None = None
    price: float | None = None
    preset: Literal["in-process", "automated", "manual"] | None = None
    nccl: str | None = None
    torch: str | None = None
    error_handling: int | None = None
    launcher: Launcher | None = None


_SAID = {
    "down_seconds": "down",
    "gpus": "gpus",
    "usable_after_seconds": "usable_after",
    "ib_timeout": "ib_timeout",
    "retry_cnt": "retry_cnt",
    "schedule": "schedule",
    "timer_floor": "timer_floor",
    "budget_factor": "budget_factor",
    "failover_slowdown": "slowdown",
    "watchdog_seconds": "watchdog",
    "enqueued_seconds": "enqueued_before",
    "slack_seconds": "slack",
    "propagation_seconds": "propagation",
    "restart_seconds": "restart",
    "checkpoint_age_seconds": "checkpoint_age",
    "price_per_gpu_hour": "price",
}
"""Input -> field of the question."""
_FLAGS: dict[str, tuple[str, Any]] = {
    "hang": ("hang", True),
    "failover": ("failover", True),
    "coordinated": ("uncoordinated", False),
    "extra_tries": ("first_try_counts", 1),
}
"""Input -> flag of the question, and the value that it stands for."""
_CONFIGURED = {
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
"""Input -> setting of the job."""


def inputs_of(question: Question, job: JobSettings, cost: CostSettings) -> Inputs:
    """What is said, over what is configured, over presets and versions, over the defaults.

    FlapdError where the number of GPUs is not known, or a version is none.
    """
    known = _configured(job, cost) | _said(question)
    if "gpus" not in known:
        raise FlapdError("the number of GPUs that stand still, or job.world_size, is needed")
    inputs = Inputs(gpus=known["gpus"], down_seconds=known["down_seconds"])
    if question.preset is not None:
        inputs = with_restart(inputs, question.preset)
    releases = Releases(question.nccl, question.torch, question.launcher, question.error_handling)
    return with_releases(replace(inputs, **known), releases)


def checkpoints_of(question: Question, job: JobSettings) -> Checkpoints:
    """How often the job saves, and how long that blocks it."""
    usual = Checkpoints()
    configured = job.checkpoint_interval
    interval = usual.interval_seconds if configured is None else configured.seconds
    cost = question.checkpoint_cost
    return Checkpoints(
        interval_seconds=question.checkpoint_interval or interval,
        cost_seconds=usual.cost_seconds if cost is None else cost,
    )


def _said(question: Question) -> dict[str, Given[Any]]:
    values = {name: getattr(question, field) for name, field in _SAID.items()}
    found = {name: exactly(value, "option") for name, value in values.items() if value is not None}
    for name, (flag, value) in _FLAGS.items():
        if getattr(question, flag):
            found[name] = exactly(value, "option")
    if question.checkpoint_interval is not None and question.checkpoint_age is None:
        interval = exactly(question.checkpoint_interval, "option")
        found["checkpoint_age_seconds"] = checkpoint_age(interval)
    return found


def _configured(job: JobSettings, cost: CostSettings) -> dict[str, Given[Any]]:
    settings = {name: _plain(getattr(job, key)) for name, key in _CONFIGURED.items()}
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
