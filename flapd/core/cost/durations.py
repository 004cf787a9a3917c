"""Durations: how long outages lasted, from intervals in which their lengths are known to lie."""

import math
from collections.abc import Iterable, Sequence

import msgspec

from flapd.core.cost.survival import Observed

MOST_OUTAGES = 1000
"""The newest; more would take long to compare and tell hardly anything new."""

_SHARP_SECONDS = 1.5
"""An interval no wider is good enough, however short the outage: a counter may lag a second."""


class Length(msgspec.Struct, frozen=True):
    """Between `low` and `high` seconds; `high` None: it went on, or its end is not known."""

    low: float
    high: float | None

    @property
    def likely(self) -> float:
        """The middle; the least where the most is not known."""
        return self.low if self.high is None else (self.low + self.high) / 2

    @property
    def is_vague(self) -> bool:
        """Not known to within a factor of two: it says too little to reckon with."""
        if self.high is None:
            return self.low <= 0
        return self.high - self.low > _SHARP_SECONDS and self.high > 2 * self.low


def outage_length(
    down_seconds: tuple[float, float] | None, downs: int, span: tuple[float, float] | None
) -> Length:
    """Of an outage that ended, or whose end is lost (None).

    `span` is from the first down to the last up: in a burst nothing flows reliably in between.
    """
    if down_seconds is None:
        return Length(0.0, None)
    low, high = down_seconds
    if downs <= 1 or span is None:
        return Length(low, high)
    return Length(max(low, span[0]), max(high, span[1]))


class Durations(msgspec.Struct, frozen=True):
    """What can be reckoned with, from down until usable."""

    outages: tuple[Observed, ...]
    longest_seconds: float
    """That any of those that ended can have lasted."""
    vague: int
    """Left out: their lengths are not known to within a factor of two."""
    not_ended: int
    """Of the outages, those that lasted longer than was seen."""
    passed_over: int
    """Older ones beyond MOST_OUTAGES."""


def durations(lengths: Sequence[Length], usable_after_seconds: float = 0.0) -> Durations:
    """Of outages given newest first; the middle of its interval stands for each.

    `usable_after_seconds`: from the link's up until traffic can pass, where no state shows that.
    """
    sharp = [one for one in lengths if not one.is_vague]
    used = sharp[:MOST_OUTAGES]
    outages = tuple(_observed(one, usable_after_seconds) for one in used)
    ended = [one.high for one in used if one.high is not None]
    return Durations(
        outages=outages,
        longest_seconds=max(ended, default=0.0) + (usable_after_seconds if ended else 0.0),
        vague=len(lengths) - len(sharp),
        not_ended=sum(one.censored for one in outages),
        passed_over=len(sharp) - len(used),
    )


def _observed(length: Length, usable_after_seconds: float) -> Observed:
    if length.high is None:
        return Observed(length.low, censored=True)
    return Observed(length.likely + usable_after_seconds)


def quantile(outages: Iterable[Observed], share: float) -> float | None:
    """Of those that ended: so many of them were no longer; None where none ended."""
    ended = sorted(one.seconds for one in outages if not one.censored)
    if not ended:
        return None
    return ended[max(0, math.ceil(share * len(ended)) - 1)]
