"""Written: the values that a parameter may have, as text, and how each is read.

Whatever a reader accepts, its pattern accepts as well: clients check by the pattern before they
ask. What only arithmetic can tell (the 30th of February, a limit) the reader refuses.
"""

import re
from datetime import datetime, timedelta, timezone

import msgspec

from flapd.model.duration import parse_duration
from flapd.model.times import SECOND_NS

RIGHT_TIME = (
    "an RFC 3339 time such as 2026-11-30T03:12:07Z, unix seconds, or an age such as 15m or 2h"
)
RIGHT_SPAN = "a number of seconds or a duration such as 500ms"

_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"
_DURATION = r"[0-9]{1,12}(?:\.[0-9]{1,9})?(?:ms|s|m|h|d)"
_RFC3339 = (
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    r"[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
    r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
SPAN_PATTERN = rf"^(?:{_NUMBER}|{_DURATION})$"
TIME_PATTERN = rf"^(?:{_NUMBER}|{_DURATION}|{_RFC3339})$"

_IS_NUMBER = re.compile(_NUMBER)
_IS_DURATION = re.compile(_DURATION)
_IS_RFC3339 = re.compile(_RFC3339)
_LAST_UNIX_NS = 253_402_300_800 * SECOND_NS  # the year 10000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def unix_ns(raw: str, now_unix_ns: int) -> int:
    """RFC 3339, unix seconds or an age, as unix time; raises ValueError for anything else."""
    if _IS_NUMBER.fullmatch(raw):
        return _on_the_calendar(_decimal_ns(raw))
    if _IS_RFC3339.fullmatch(raw):
        return _on_the_calendar(_rfc3339_ns(raw))
    return max(0, now_unix_ns - span_ns(raw))


def span_ns(raw: str) -> int:
    """A number of seconds or a duration; raises ValueError for anything else."""
    if _IS_NUMBER.fullmatch(raw):
        return _decimal_ns(raw)
    if _IS_DURATION.fullmatch(raw):
        return parse_duration(raw).ns
    raise ValueError(RIGHT_SPAN)


def _decimal_ns(raw: str) -> int:
    """Exact: a float holds unix time to 200 ns only."""
    whole_seconds, _, fraction = raw.partition(".")
    return int(whole_seconds) * SECOND_NS + int(fraction.ljust(9, "0"))


def _rfc3339_ns(raw: str) -> int:
    try:
        moment = msgspec.convert(raw, datetime)
    except msgspec.ValidationError:
        raise ValueError(RIGHT_TIME) from None
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _on_the_calendar(at_unix_ns: int) -> int:
    if not 0 <= at_unix_ns < _LAST_UNIX_NS:
        raise ValueError(RIGHT_TIME)
    return at_unix_ns
