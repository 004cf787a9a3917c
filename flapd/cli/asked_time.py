"""AskedTime: a moment as somebody on call types it."""

import re
from datetime import datetime, timedelta, timezone, tzinfo
from typing import NamedTuple

from flapd.model.errors import FlapdError
from flapd.model.times import SECOND_NS
from flapd.serve.written import span_ns, unix_ns

RIGHT = "RFC 3339 such as 2026-11-30T03:12:07Z, a time of day such as 03:12, or an age such as 2h"

_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")
_AGE = re.compile(r"[0-9.]+(?:ms|s|m|h|d)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")


class AskedTime(NamedTuple):
    first_ns: int
    """Unix time."""
    last_ns: int
    said: str
    """What it was taken for, with its zone."""


def asked_time(written: str, now_ns: int, utc: bool) -> AskedTime | None:
    """None where it is no time but a name; FlapdError where it is a time written wrongly."""
    clock = _CLOCK.fullmatch(written)
    if clock is not None:
        return _last(int(clock[1]), int(clock[2]), clock[3], now_ns, utc)
    if not _AGE.fullmatch(written) and _DATE.match(written) is None:
        return None
    try:
        at_ns = now_ns - span_ns(written) if _AGE.fullmatch(written) else unix_ns(written, now_ns)
    except ValueError:
        raise FlapdError(f"{written}: {RIGHT} would be right") from None
    return AskedTime(at_ns, at_ns, _said(_moment(at_ns, utc), with_seconds=True))


def _last(hour: int, minute: int, second: str | None, now_ns: int, utc: bool) -> AskedTime:
    """The last such time of day that has begun."""
    now = _moment(now_ns, utc)
    at = now.replace(hour=hour, minute=minute, second=int(second or 0), microsecond=0)
    at = _in_its_zone(at, utc)
    if at > now:
        at = _in_its_zone(at - timedelta(days=1), utc)
    first_ns = round(at.timestamp()) * SECOND_NS
    length_ns = SECOND_NS if second else 60 * SECOND_NS
    return AskedTime(first_ns, first_ns + length_ns - 1, _said(at, with_seconds=bool(second)))


def _in_its_zone(at: datetime, utc: bool) -> datetime:
    """The same time of day by the clock on the wall, which summer time may have moved since."""
    return at if utc else at.replace(tzinfo=None).astimezone()


def _moment(at_ns: int, utc: bool) -> datetime:
    zone: tzinfo | None = timezone.utc if utc else None
    try:
        return datetime.fromtimestamp(at_ns // SECOND_NS, timezone.utc).astimezone(zone)
    except (OverflowError, ValueError, OSError):
        raise FlapdError(f"no calendar reaches that far back: {RIGHT} would be right") from None


def _said(at: datetime, *, with_seconds: bool) -> str:
    zone = timezone(at.utcoffset() or timedelta(0)).tzname(None)
    return f"{at:%Y-%m-%d %H:%M:%S} {zone}" if with_seconds else f"{at:%Y-%m-%d %H:%M} {zone}"
