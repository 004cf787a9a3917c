"""CostAnswer: the price of a flap in the form that `/cost` and `flapd cost --json` give."""

import math

import msgspec

from flapd.core.cost.calibration import Retry, retry_of, with_retry
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.price import HOUR_SECONDS, Price, money, price
from flapd.core.cost.repeated import Checkpoints, Repeated, repeated
from flapd.model.loss import Regime

DAY_SECONDS = 86400.0
MONTH_DAYS = 30


class Money(msgspec.Struct, frozen=True):
    likely: float
    currency: str


class PerSpan(msgspec.Struct, frozen=True):
    """Of flaps that come again and again; one that falls into the loss of another adds nothing."""

    flaps: float
    gpu_seconds: float
    cost: float
    capacity_share: float
    """Of everything the job could compute in that time."""


class CostAnswer(msgspec.Struct, frozen=True):
    """None where it did not happen, or never ends by itself."""

    inputs: Inputs
    tick_seconds: float | None
    budget_seconds: float | None
    resume_seconds: float | None
    """None after an abort."""
    regime: Regime
    detect_seconds: float | None
    propagation_seconds: float
    restart_seconds: float
    rework_seconds: float
    lost_seconds: float | None
    gpu_seconds: float | None
    gpu_hours: float | None
    cost: Money | None
    per_day: PerSpan | None
    """None where nobody said how often."""
    per_month: PerSpan | None = None
    """Of 30 days."""
    repeated: Repeated | None = None
    """What is left of a job that dies so often; None where it does not die."""
    calibrations: tuple[Retry, ...] = ()
    """What was measured on this node, also where it is too little to reckon with."""


def cost_answer(
    inputs: Inputs,
    currency: str,
    every_seconds: float | None = None,
    saves: Checkpoints = Checkpoints(),  # noqa: B008 - frozen
    calibrations: tuple[Retry, ...] = (),
) -> CostAnswer:
    """`saves` matters where a flap that kills comes `every_seconds`.

    What was measured holds where nobody said something of the timers.
    """
    inputs = with_retry(inputs, retry_of(calibrations, inputs))
    case = inputs.likely()
    found = price(case)
    parts = found.parts
    day = None if every_seconds is None else per_day(inputs, found, every_seconds)
    survived = found.regime in ("hidden", "absorbed")
    gpu_seconds = _finite(found.gpu_seconds)
    return CostAnswer(
        inputs=inputs,
        tick_seconds=_finite(found.tick_seconds),
        budget_seconds=_finite(found.budget_seconds),
        resume_seconds=found.resume_seconds if survived else None,
        regime=found.regime,
        detect_seconds=_finite(parts.detect) if parts.detect else None,
        propagation_seconds=parts.propagation,
        restart_seconds=parts.restart,
        rework_seconds=parts.rework,
        lost_seconds=_finite(parts.lost),
        gpu_seconds=gpu_seconds,
        gpu_hours=None if gpu_seconds is None else gpu_seconds / HOUR_SECONDS,
        cost=None if gpu_seconds is None else Money(found.cost, currency),
        per_day=day,
        per_month=None if day is None else _per_month(day),
        repeated=None if every_seconds is None else _repeated(found, every_seconds, saves),
        calibrations=calibrations,
    )


def _repeated(found: Price, every_seconds: float, saves: Checkpoints) -> Repeated | None:
    away = found.parts.detect + found.parts.downtime
    died = found.regime in ("transport_abort", "watchdog")
    return repeated(every_seconds, away, saves) if died and math.isfinite(away) else None


def per_day(inputs: Inputs, found: Price, every_seconds: float) -> PerSpan:
    """At most all that there is: who stands still already cannot lose more."""
    case = inputs.likely()
    lost = min(found.parts.lost, every_seconds)
    flaps = DAY_SECONDS / every_seconds
    gpu_seconds = case.gpus * lost * flaps
    return PerSpan(
        flaps=flaps,
        gpu_seconds=gpu_seconds,
        cost=money(gpu_seconds, case.price_per_gpu_hour),
        capacity_share=lost / every_seconds,
    )


def _per_month(day: PerSpan) -> PerSpan:
    return PerSpan(
        flaps=day.flaps * MONTH_DAYS,
        gpu_seconds=day.gpu_seconds * MONTH_DAYS,
        cost=day.cost * MONTH_DAYS,
        capacity_share=day.capacity_share,
    )


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value
