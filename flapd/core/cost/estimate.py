"""Estimate: the regimes a flap may have met, and the loss as low, likely and high."""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from flapd.core.cost.assumed import assumed_share
from flapd.core.cost.bounds import lost_range
from flapd.core.cost.budget import Budget, budget_of, death_probability
from flapd.core.cost.case import Case
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.price import money
from flapd.model.given import Given
from flapd.model.loss import REGIMES, Parts, Range, Regime

RARE = 0.05
"""A regime less likely than this does not widen the range."""

_POINTS = 64


class Estimate(msgspec.Struct, frozen=True):
    """What a flap cost a job, as far as it is known."""

    regimes: dict[Regime, float]
    """The chance of each; those that cannot be are not in it."""
    regime: Regime
    """The most likely."""
    lost_seconds: Range
    parts: Parts
    """Of the likely loss."""
    assumed_share: float
    """Share of the likely loss that rests on what nobody said of this job."""
    gpu_seconds: Range
    cost: Range


def estimate(
    inputs: Inputs, observed: Regime | None = None, hidden_chance: float = 0.0
) -> Estimate:
    """The whole estimate; `observed` = it was seen what became of the flap.

    `hidden_chance`: that it fell into a gap of the job's traffic.
    """
    budget = budget_of(inputs)
    chances = {observed: 1.0} if observed else regime_chances(inputs, budget, hidden_chance)
    regime = max(chances, key=lambda one: chances[one])
    lost, parts = _lost(inputs, budget, chances, regime)
    gpu_seconds = Range(
        lost.low * inputs.gpus.low, lost.likely * inputs.gpus.value, lost.high * inputs.gpus.high
    )
    price = inputs.price_per_gpu_hour
    return Estimate(
        regimes=chances,
        regime=regime,
        lost_seconds=lost,
        parts=parts,
        assumed_share=assumed_share(inputs, regime, parts),
        gpu_seconds=gpu_seconds,
        cost=Range(
            money(gpu_seconds.low, price.low),
            money(gpu_seconds.likely, price.value),
            money(gpu_seconds.high, price.high),
        ),
    )


def _lost(
    inputs: Inputs, budget: Budget, chances: dict[Regime, float], regime: Regime
) -> tuple[Range, Parts]:
    chosen, parts = lost_range(regime, inputs, budget)
    possible = [chosen]
    possible += [lost_range(one, inputs, budget)[0] for one, p in chances.items() if p >= RARE]
    low, high = min(one.low for one in possible), max(one.high for one in possible)
    return Range(low, chosen.likely, high), parts


def regime_chances(
    inputs: Inputs, budget: Budget, hidden_chance: float = 0.0
) -> dict[Regime, float]:
    """Over all durations and budgets that are possible; adds up to 1."""
    shortest, longest = inputs.least().pathless_seconds, inputs.most().pathless_seconds
    likely = replace(inputs.likely(), usable_after_seconds=0.0)
    total: dict[Regime, float] = dict.fromkeys(REGIMES, 0.0)
    total["hidden"] = hidden_chance
    points = _spread(shortest, longest)
    for seconds in points:
        case = replace(likely, down_seconds=seconds)
        for regime, share in _shares(case, budget, inputs.slack_seconds):
            total[regime] += (1 - hidden_chance) * share / len(points)
    return {regime: chance for regime, chance in total.items() if chance > 0}


def _spread(low: float, high: float) -> list[float]:
    """Evenly over the interval."""
    if low == high:
        return [low]
    step = (high - low) / _POINTS
    return [low + step * (point + 0.5) for point in range(_POINTS)]


def _shares(case: Case, budget: Budget, slack: Given[float]) -> Iterator[tuple[Regime, float]]:
    """What may become of one outage of known length."""
    if case.hang:
        yield "watchdog", 1.0
        return
    died = death_probability(min(case.pathless_seconds, case.patience_seconds), budget)
    yield _fate_of_errors(case), died
    resume = case.timer.resume_seconds(case.pathless_seconds)
    if resume > case.patience_seconds:
        yield "watchdog", 1 - died
        return
    within = _share_within(resume, slack)
    yield "hidden", (1 - died) * within
    yield "absorbed", (1 - died) * (1 - within)


def _fate_of_errors(case: Case) -> Regime:
    if case.failover:
        return "failover"
    return "transport_abort" if case.coordinated else "watchdog"


def _share_within(resume: float, slack: Given[float]) -> float:
    """The chance that the slack covers it."""
    if resume <= slack.low:
        return 1.0
    if resume >= slack.high:
        return 0.0
    return (slack.high - resume) / (slack.high - slack.low)
