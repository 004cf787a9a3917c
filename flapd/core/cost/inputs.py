"""Inputs: the model's inputs with what is known of each, and what jobs usually have."""

from typing import Any

import msgspec
from msgspec.structs import replace

from flapd.core.cost.case import Case
from flapd.core.cost.timer import Schedule
from flapd.model.given import Given, default, exactly

CHECKPOINT_INTERVAL_SECONDS = 1800.0


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of Case, each with its interval and its source."""

    gpus: Given[int]
    down_seconds: Given[float]
    usable_after_seconds: Given[float] = default(0.0, 0.0, 0.0)
    ib_timeout: Given[int] = default(20, 18, 22)
    """NCCL 2.23 and later; 18 before, and images of some clouds set 22."""
    retry_cnt: Given[int] = default(7, 7, 7)
    timer_floor: Given[int] = default(0, 0, 0)
    extra_tries: Given[int] = default(0, 0, 0)
    budget_factor: Given[float] = default(1.0, 1.0, 1.0)
    schedule: Given[Schedule] = exactly("fixed", "default")
    hang: Given[bool] = exactly(False, "default")
    coordinated: Given[bool] = exactly(True, "default")
    failover: Given[bool] = exactly(False, "default")
    failover_slowdown: Given[float] = default(0.0, 0.0, 0.5)
    """At most half of its speed, where one of two merged ports is left."""
    slack_seconds: Given[float] = default(0.0, 0.0, 0.0)
    watchdog_seconds: Given[float] = default(600.0, 600.0, 1800.0)
    enqueued_seconds: Given[float] = default(0.0, 0.0, 10.0)
    poll_seconds: Given[float] = default(0.1, 0.0, 0.1)
    propagation_seconds: Given[float] = default(15.0, 1.0, 60.0)
    restart_seconds: Given[float] = default(300.0, 150.0, 600.0)
    checkpoint_age_seconds: Given[float] = default(
        CHECKPOINT_INTERVAL_SECONDS / 2, 0.0, CHECKPOINT_INTERVAL_SECONDS
    )
    price_per_gpu_hour: Given[float] = default(2.5, 2.5, 2.5)

    def likely(self) -> Case:
        """The case by the values to reckon with."""
        values: dict[str, Any] = {
            name: getattr(self, name).value for name in self.__struct_fields__
        }
        return Case(**values)

    def least(self) -> Case:
        """As `likely`, with every wait at its shortest; the budget is another matter."""
        return self._with("low", "high")

    def most(self) -> Case:
        """As `likely`, with every wait at its longest; the budget is another matter."""
        return self._with("high", "low")

    def _with(self, waits: str, savings: str) -> Case:
        ends: dict[str, Any] = {
            **{name: getattr(getattr(self, name), waits) for name in _WAITS},
            **{name: getattr(getattr(self, name), savings) for name in _SAVINGS},
        }
        return replace(self.likely(), **ends)


_WAITS = (
    "gpus",
    "down_seconds",
    "usable_after_seconds",
    "failover_slowdown",
    "watchdog_seconds",
    "poll_seconds",
    "propagation_seconds",
    "restart_seconds",
    "checkpoint_age_seconds",
)
"""The more, the dearer."""
_SAVINGS = ("slack_seconds", "enqueued_seconds")
"""The more, the cheaper."""


def checkpoint_age(interval: Given[float]) -> Given[float]:
    """Of a flap at a random moment: anything up to the interval, half of it on average."""
    return Given(interval.value / 2, 0.0, interval.high, interval.source)
