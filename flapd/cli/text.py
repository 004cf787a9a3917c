"""Text for a terminal: what others wrote made harmless, and no more claimed than is known."""

import math
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import msgspec

from flapd.serve.items import Interval, Seconds

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)

_UNITS = (("s", 1, 2), ("min", 60, 1), ("h", 3600, 1))
_DAYS = ("d", 86400, 1)
_MOST_OF_A_UNIT = 100


def printable(text: str) -> str:
    """Without the characters that steer a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def moment(interval: Interval) -> str:
    """`2026-11-30 03:12:07.412 ±0.050`, in UTC; what is written covers the whole interval."""
    earliest_us, latest_us = _unix_us(interval.earliest), _unix_us(interval.latest)
    middle_ms = (earliest_us + latest_us) // 2000
    half_ms = max(middle_ms - earliest_us // 1000, -(-latest_us // 1000) - middle_ms)
    middle = _EPOCH + timedelta(milliseconds=middle_ms)
    return f"{middle:%Y-%m-%d %H:%M:%S}.{middle_ms % 1000:03d} ±{half_ms / 1000:.3f}"


def _unix_us(written: str) -> int:
    """Raises msgspec.ValidationError for what is no RFC 3339 time."""
    return (msgspec.convert(written, datetime) - _EPOCH) // _MICROSECOND


def span(seconds: Seconds) -> str:
    """As `0.42-0.61 s`: the shortest rounded down, the longest rounded up."""
    if seconds.min is None or seconds.max is None:
        return "not known"
    unit, size, digits = _unit(seconds.max)
    low = _rounded(seconds.min / size, digits, math.floor)
    high = _rounded(seconds.max / size, digits, math.ceil)
    return f"{low} {unit}" if low == high else f"{low}\N{EN DASH}{high} {unit}"


def _unit(longest: float) -> tuple[str, int, int]:
    return next((unit for unit in _UNITS if longest < _MOST_OF_A_UNIT * unit[1]), _DAYS)


def _rounded(value: float, digits: int, towards: Callable[[float], int]) -> str:
    step = 10**digits
    # To the nanosecond first: 0.42 * 100 is not 42 in binary.
    return f"{towards(round(value * step, 6)) / step:.{digits}f}"


def count(number: int, at_least: bool) -> str:
    return f"at least {number}" if at_least else str(number)
