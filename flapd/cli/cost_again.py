"""What flaps cost that come again and again, and how often their job should save."""

from collections.abc import Iterator

from flapd.cli.output import print_line
from flapd.core.cost.answer import CostAnswer
from flapd.core.cost.repeated import BestInterval, Locked, Repeated
from flapd.model.duration import parse_duration


def print_again(answer: CostAnswer, every_seconds: float, currency: str) -> None:
    """Per day and month; for deaths, what is left of the job by both models."""
    day, month = answer.per_day, answer.per_month
    assert day is not None
    assert month is not None
    print_line(
        f"Once every {parse_duration(every_seconds)}: {day.flaps:,g} a day, "
        f"{day.gpu_seconds:,.0f} GPU-s, {day.cost:,.2f} {currency} a day, "
        f"{month.cost:,.2f} {currency} in 30 days, {day.capacity_share:.2%} of the job.",
        indent=2,
    )
    if answer.repeated is not None:
        for sentence in _deaths(answer.repeated):
            print_line(sentence, indent=2)


def _deaths(found: Repeated) -> Iterator[str]:
    saves = found.saves
    yield (
        f"With a checkpoint every {saves.interval_seconds:,g} s that takes "
        f"{saves.cost_seconds:,g} s, the restarted job's clock starts with it:"
    )
    yield _locked(found.at_fixed_period)
    random = found.goodput_at_random
    yield f"  at random, as often on average: it keeps {random:.1%} of its time."
    if found.best is not None:
        yield _best(found.best, saves.interval_seconds)


def _best(best: BestInterval, own_seconds: float) -> str:
    return (
        f"  Best interval for deaths at random: {best.daly_seconds:,.0f} s (Daly), "
        f"{best.young_seconds:,.0f} s (Young), beside the job's {own_seconds:,g} s; "
        f"by Daly's it would keep {best.goodput:.1%}."
    )


def _locked(locked: Locked) -> str:
    if locked.checkpoints == 0:
        return "  at a fixed period: it never gets to a checkpoint and never advances."
    return (
        f"  at a fixed period: {locked.usable_seconds:,.1f} s between two deaths, "
        f"{locked.checkpoints} saved, {locked.checkpoint_age_seconds:,.1f} s done again: "
        f"it keeps {locked.goodput:.1%} of its time."
    )
