"""Text for a terminal: what others wrote made harmless, and no more claimed than is known."""

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone

import msgspec

from flapd.cli.answers import Interval, Seconds, Spread
from flapd.model.errors import CouldNotFindOutError
from flapd.model.times import SECOND_NS, rfc3339

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)

_UNITS = (("s", 1, 2), ("min", 60, 1), ("h", 3600, 1))
_DAYS = ("d", 86400, 1)
_MOST_OF_A_UNIT = 100


def printable(text: str) -> str:
    """Without the characters that steer a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def times(intervals: Sequence[Interval], utc: bool) -> tuple[str, list[str]]:
    """A zone, and each moment in it; where summer and winter mix, each tells its own."""
    offsets = [timedelta(0) if utc else _local_offset(interval) for interval in intervals]
    moments = [moment(*pair) for pair in zip(intervals, offsets, strict=True)]
    if len(set(offsets)) <= 1:
        return _zone(offsets[0] if offsets else timedelta(0)), moments
    pairs = zip(moments, offsets, strict=True)
    return "local time", [f"{text} {_zone(offset)}" for text, offset in pairs]


def _local_offset(interval: Interval) -> timedelta:
    at = _EPOCH + timedelta(microseconds=_unix_us(interval.earliest))
    return at.astimezone().utcoffset() or timedelta(0)


def _zone(offset: timedelta) -> str:
    return timezone(offset).tzname(None)


def moment(interval: Interval, offset: timedelta = timedelta(0)) -> str:
    """`2026-11-30 03:12:07.412 ±0.050`, at `offset` from UTC; it covers the whole interval."""
    earliest_us, latest_us = _unix_us(interval.earliest), _unix_us(interval.latest)
    middle_ms = (earliest_us + latest_us) // 2000
    half_ms = max(middle_ms - earliest_us // 1000, -(-latest_us // 1000) - middle_ms)
    middle = _EPOCH + timedelta(milliseconds=middle_ms) + offset
    return f"{middle:%Y-%m-%d %H:%M:%S}.{middle_ms % 1000:03d} ±{half_ms / 1000:.3f}"


def clock_time(written: str, utc: bool = False) -> str:
    """An RFC 3339 time to the second, with its zone."""
    zone, (text,) = times([Interval(written, written)], utc)
    return f"{text.partition('.')[0]} {zone}"


def shifted(written: str, before_seconds: float, after_seconds: float) -> Interval:
    """So much before and after this time."""
    at_ns = unix_ns(written)
    first, last = (
        rfc3339(at_ns + round(seconds * SECOND_NS)) for seconds in (-before_seconds, after_seconds)
    )
    return Interval(first, last)


def unix_ns(written: str) -> int:
    return _unix_us(written) * 1000


def _unix_us(written: str) -> int:
    """CouldNotFindOutError where it is no RFC 3339 time."""
    try:
        return (msgspec.convert(written, datetime) - _EPOCH) // _MICROSECOND
    except (msgspec.ValidationError, TypeError):  # of a time without a zone
        raise CouldNotFindOutError(
            f"the answer is not one of flapd's: {written!r} is no time"
        ) from None


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


def count(number: int | None, at_least: bool) -> str:
    """`250+` is at least 250."""
    if number is None:
        return "not known"
    return f"{number}+" if at_least else str(number)


def gpu_seconds(spread: Spread | None) -> str:
    """About how many, as `4,506 GPU-s`; "" where that is not known."""
    return "" if spread is None else f"{amount(spread.likely)} GPU-s"


def amount(value: float | None, digits: int = 0) -> str:
    """With commas; None is what has no end."""
    return "endless" if value is None else f"{value:,.{digits}f}"


def length(seconds: float) -> str:
    """About how long, as `3.2 d`."""
    unit, size, _ = _unit(seconds)
    return f"{seconds / size:.0f} {unit}" if unit == "s" else f"{seconds / size:.1f} {unit}"


def size(number_bytes: int) -> str:
    """About how much, as `12.4 MB`."""
    amount = float(number_bytes)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
