"""Words: numbers and times as a person would write them."""

import math
import re

from flapd.model.loss import Range
from flapd.model.times import rfc3339

_MINUTES_FROM = 120.0
_CLOCK = re.compile(r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d(?: UTC)?: ", re.ASCII)


def clock(unix_ns: int) -> str:
    """Of the day, in UTC: 03:12:07.1."""
    return rfc3339(unix_ns)[11:21]


def day_and_clock(unix_ns: int) -> str:
    return f"{rfc3339(unix_ns)[:10]} {clock(unix_ns)} UTC"


def tells_a_time(sentence: str) -> bool:
    """It says what was seen and when, and not what follows from that."""
    return _CLOCK.match(sentence) is not None


def seconds(value: float) -> str:
    if math.isinf(value):
        return "for ever"
    if value >= _MINUTES_FROM:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{value:.0f} s" if value >= 100 else f"{value:.{1 if value >= 1 else 2}f} s"


def percent(share: float) -> str:
    if share >= 0.9995:
        return "over 99.9 %"
    if 0 < share < 0.0001:
        return "under 0.01 %"
    return f"{100 * share:.{1 if share >= 0.01 else 2}f} %"


def amount(value: float) -> str:
    return "without end" if math.isinf(value) else f"{value:,.0f}"


def between(spread: Range, unit: str) -> str:
    """The likely one, and the ends where they differ."""
    likely = f"{amount(spread.likely)} {unit}"
    if amount(spread.low) == amount(spread.high):
        return likely
    return f"{likely} (between {amount(spread.low)} and {amount(spread.high)})"


def plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(items: list[str], most: int = 4) -> str:
    shown, left = items[:most], len(items) - most
    if left > 0:
        return f"{', '.join(shown)} and {left} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else ""
