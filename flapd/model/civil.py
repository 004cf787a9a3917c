"""Civil: a time as a log prints it, without a zone."""

from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


def civil_ns(
    year: int, month: int, day: int, hour: int, minute: int, second: int, fraction_ns: int = 0
) -> int | None:
    """Unix time if it were UTC, in ns; None where the calendar has no such moment."""
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except (ValueError, OverflowError):
        return None
    return (moment - _EPOCH) // _MICROSECOND * 1000 + fraction_ns


def year_of(unix_ns: int) -> int:
    """In UTC; for times that the calendar has."""
    return (_EPOCH + timedelta(microseconds=unix_ns // 1000)).year
