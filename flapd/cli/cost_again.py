"""What flaps cost that come again and again, and how often their job should save."""

from collections.abc import Iterator

from flapd.cli.output import print_line
from flapd.core.cost.answer import PerDay
from flapd.core.cost.price import Price
from flapd.core.cost.repeated import (
    Checkpoints,
    at_fixed_period,
    daly_interval,
    goodput_at_random,
    young_interval,
)
from flapd.model.duration import parse_duration

_MONTH_DAYS = 30


def print_again(
    found: Price,
    day: PerDay,
    every_seconds: float,
    checkpoints: Checkpoints,
    currency: str,
) -> None:
    """Per day and month; for deaths, what is left of the job by both models."""
    days = _MONTH_DAYS
    print_line(
        f"Once every {parse_duration(every_seconds)}: {day.flaps:,g} a day, "
        f"{day.gpu_seconds:,.0f} GPU-s, {day.cost:,.2f} {currency} a day, "
        f"{day.cost * days:,.2f} {currency} in {days} days, {day.capacity_share:.2%} of the job.",
        indent=2,
    )
    if found.regime in ("transport_abort", "watchdog"):
        away = found.parts.detect + found.parts.downtime
        for sentence in _deaths(every_seconds, away, checkpoints):
            print_line(sentence, indent=2)


def _deaths(every: float, away: float, saves: Checkpoints) -> Iterator[str]:
    yield (
        f"With a checkpoint every {saves.interval_seconds:,g} s that takes "
        f"{saves.cost_seconds:,g} s, the restarted job's clock starts with it:"
    )
    yield _locked(every, away, saves)
    random = goodput_at_random(every, away, saves)
    yield f"  at random, as often on average: it keeps {random:.1%} of its time."
    if saves.cost_seconds > 0:
        young = young_interval(saves.cost_seconds, every)
        daly = daly_interval(saves.cost_seconds, every)
        yield f"  Best interval for deaths at random: {daly:,.0f} s (Daly), {young:,.0f} s (Young)."


def _locked(every: float, away: float, saves: Checkpoints) -> str:
    locked = at_fixed_period(every, away, saves)
    if locked.checkpoints == 0:
        return "  at a fixed period: it never gets to a checkpoint and never advances."
    return (
        f"  at a fixed period: {locked.usable_seconds:,.1f} s between two deaths, "
        f"{locked.checkpoints} saved, {locked.checkpoint_age_seconds:,.1f} s done again: "
        f"it keeps {locked.goodput:.1%} of its time."
    )
