"""Repeated flaps: what is left of a job that dies again and again, and how often to save."""

import math

import msgspec

from flapd.core.cost.inputs import CHECKPOINT_INTERVAL_SECONDS

CHECKPOINT_COST_SECONDS = 30.0


class Checkpoints(msgspec.Struct, frozen=True):
    """Work between two checkpoints, and how long saving one blocks the job."""

    interval_seconds: float = CHECKPOINT_INTERVAL_SECONDS
    cost_seconds: float = CHECKPOINT_COST_SECONDS

    @property
    def cycle_seconds(self) -> float:
        return self.interval_seconds + self.cost_seconds


class Locked(msgspec.Struct, frozen=True):
    """One period of a job that dies at a fixed period."""

    usable_seconds: float
    """Between the restart and the next death."""
    checkpoints: int
    lost_seconds: float
    goodput: float
    """Share of the time that ends in a checkpoint."""
    checkpoint_age_seconds: float


def at_fixed_period(period_seconds: float, away_seconds: float, saves: Checkpoints) -> Locked:
    """The restarted job's checkpoint clock starts with it, so the rework is locked to the flap.

    `away_seconds`: from the down until the job runs again (detection, propagation, restart).
    """
    usable = max(0.0, period_seconds - away_seconds)
    done = int(usable // saves.cycle_seconds)
    progress = done * saves.interval_seconds
    return Locked(
        usable_seconds=usable,
        checkpoints=done,
        lost_seconds=period_seconds - progress,
        goodput=progress / period_seconds,
        checkpoint_age_seconds=usable - done * saves.cycle_seconds,
    )


def goodput_at_random(mean_seconds: float, away_seconds: float, saves: Checkpoints) -> float:
    """Deaths at random, a restart can be hit as well (Daly 2006, the exact form)."""
    segment = _segment(mean_seconds, saves)
    spent = segment + away_seconds / mean_seconds
    # exp(away / mean) * (exp(cycle / mean) - 1), kept from overflow where hardly anything is left.
    return saves.interval_seconds / mean_seconds * math.exp(-spent) / -math.expm1(-segment)


def goodput_with_safe_restarts(
    mean_seconds: float, away_seconds: float, saves: Checkpoints
) -> float:
    """As `goodput_at_random`, where no death falls into a restart."""
    segment = _segment(mean_seconds, saves)
    share = saves.interval_seconds / (mean_seconds + away_seconds)
    return share * math.exp(-segment) / -math.expm1(-segment)


def _segment(mean_seconds: float, saves: Checkpoints) -> float:
    return saves.cycle_seconds / mean_seconds


def goodput_first_order(mean_seconds: float, away_seconds: float, saves: Checkpoints) -> float:
    """Expected share of effective time, first order (Kokolis et al., arXiv 2410.21680).

    Poor once `away` and half an interval are a third of `mean`.
    """
    interval = saves.interval_seconds
    kept = 1 - (away_seconds + interval / 2) / mean_seconds
    return max(0.0, kept) / (1 + saves.cost_seconds / interval)


def young_interval(cost_seconds: float, mean_seconds: float) -> float:
    """Best time between two checkpoints, first order (Young 1974)."""
    return math.sqrt(2 * cost_seconds * mean_seconds)


def daly_interval(cost_seconds: float, mean_seconds: float) -> float:
    """Best time between two checkpoints, higher order (Daly 2006)."""
    if cost_seconds >= 2 * mean_seconds:
        return mean_seconds
    ratio = cost_seconds / (2 * mean_seconds)
    series = 1 + math.sqrt(ratio) / 3 + ratio / 9
    return young_interval(cost_seconds, mean_seconds) * series - cost_seconds


class BestInterval(msgspec.Struct, frozen=True):
    """How often to save where deaths come at random."""

    young_seconds: float
    daly_seconds: float
    goodput: float
    """Share of its time that the job keeps with Daly's."""


class Repeated(msgspec.Struct, frozen=True):
    """What is left of a job that dies again and again, by both models of when."""

    away_seconds: float
    """From the down until the job runs again."""
    saves: Checkpoints
    at_fixed_period: Locked
    goodput_at_random: float
    best: BestInterval | None
    """None where saving costs nothing."""


def repeated(every_seconds: float, away_seconds: float, saves: Checkpoints) -> Repeated:
    """Deaths every so often: at this very period, or at random with this mean."""
    return Repeated(
        away_seconds=away_seconds,
        saves=saves,
        at_fixed_period=at_fixed_period(every_seconds, away_seconds, saves),
        goodput_at_random=goodput_at_random(every_seconds, away_seconds, saves),
        best=_best(every_seconds, away_seconds, saves.cost_seconds),
    )


def _best(mean_seconds: float, away_seconds: float, cost_seconds: float) -> BestInterval | None:
    if cost_seconds <= 0:
        return None
    daly = daly_interval(cost_seconds, mean_seconds)
    return BestInterval(
        young_seconds=young_interval(cost_seconds, mean_seconds),
        daly_seconds=daly,
        goodput=goodput_at_random(mean_seconds, away_seconds, Checkpoints(daly, cost_seconds)),
    )
