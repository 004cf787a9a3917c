"""Link quality: the bit error ratio of a port that is up, from the errors left after correction.

A ratio means nothing without the bits it was measured over: no error in N bits bounds it
below 3/N with 95 % (the rule of three), so windows grow as the rate falls. Limits are those
in common use: 1e-12 of the InfiniBand specification, 1e-14 over 12 minutes and 1e-15 over
125 minutes at 400 Gb/s of cable tests.
"""

from typing import Literal

import msgspec

from flapd.core.fabric.catalogue import stop_of
from flapd.model.times import SECOND_NS

SYMBOL_ERRORS = "counters/symbol_error"
"""What is left after correction on HDR and later; before, effective errors."""

Level = Literal["good", "warn", "critical"]

WINDOW_NS = 12 * 60 * SECOND_NS
WARN_RATIO = 1e-14
SHORT_WINDOW_NS = 60 * SECOND_NS
CRITICAL_RATIO = 1e-12
CLEAR_RATIO = 1e-15
FEWEST_ERRORS = 3
"""So few prove nothing, however short the window."""
TRAINING_NS = 10 * SECOND_NS
"""Errors of a link that trains are not of its cable."""
MOST_RISES = 500


class Rise(msgspec.Struct, frozen=True, array_like=True):
    at_ns: int
    errors: int


class Quality(msgspec.Struct):
    """What was seen of one port since it last came up."""

    since_ns: int | None = None
    value: int | None = None
    rises: list[Rise] = msgspec.field(default_factory=list)
    level: Level = "good"


def look(quality: Quality, now_ns: int, errors: int | None, rate_mbps: int | None) -> None:
    """The counter of symbol errors as it stands, of a port that is up at this rate.

    None for either = not known, or not up: then nothing is known of the time until now.
    """
    if errors is None or rate_mbps is None or errors == stop_of(SYMBOL_ERRORS):
        quality.since_ns = quality.value = None
        quality.rises = []
        return
    if quality.since_ns is None:
        quality.since_ns = now_ns
    if now_ns - quality.since_ns < TRAINING_NS:
        quality.value = errors
        return
    rise = errors - (quality.value if quality.value is not None else errors)
    quality.value = errors
    longest_ns = max(WINDOW_NS, _clear_window_ns(rate_mbps))
    quality.rises = [seen for seen in quality.rises if now_ns - seen.at_ns < longest_ns]
    if rise > 0:  # a fall is somebody's reset
        quality.rises = [*quality.rises, Rise(now_ns, rise)][-MOST_RISES:]
    quality.level = _level(quality, now_ns, rate_mbps)


def bit_error_ratio(quality: Quality, now_ns: int, rate_mbps: int | None) -> float | None:
    """Over the last 12 minutes; None until a minute was seen."""
    return _ratio(quality, now_ns, rate_mbps, WINDOW_NS)


def _ratio(quality: Quality, now_ns: int, rate_mbps: int | None, window_ns: int) -> float | None:
    if quality.since_ns is None or not rate_mbps:
        return None
    seen_ns = min(window_ns, now_ns - quality.since_ns - TRAINING_NS)
    if seen_ns < SHORT_WINDOW_NS:
        return None
    return _errors(quality, now_ns, seen_ns) / (_bits_per_ns(rate_mbps) * seen_ns)


def _errors(quality: Quality, now_ns: int, window_ns: int) -> int:
    return sum(rise.errors for rise in quality.rises if now_ns - rise.at_ns < window_ns)


def _level(quality: Quality, now_ns: int, rate_mbps: int) -> Level:
    def exceeds(window_ns: int, limit: float) -> bool:
        ratio = _ratio(quality, now_ns, rate_mbps, window_ns)
        is_proven = _errors(quality, now_ns, window_ns) >= FEWEST_ERRORS
        return ratio is not None and ratio > limit and is_proven

    if exceeds(SHORT_WINDOW_NS, CRITICAL_RATIO):
        return "critical"
    if exceeds(WINDOW_NS, WARN_RATIO):
        return "warn"
    if quality.level == "good":
        return "good"
    clear_ns = _clear_window_ns(rate_mbps)
    assert quality.since_ns is not None
    was_seen = now_ns - quality.since_ns - TRAINING_NS >= clear_ns
    is_clear = was_seen and _errors(quality, now_ns, clear_ns) <= FEWEST_ERRORS
    return "good" if is_clear else "warn"


def _clear_window_ns(rate_mbps: int) -> int:
    """In which no error proves the ratio to be below the limit: 3 / (rate x limit)."""
    return round(3 / (_bits_per_ns(rate_mbps) * CLEAR_RATIO))


def _bits_per_ns(rate_mbps: int) -> float:
    return rate_mbps / 1000
