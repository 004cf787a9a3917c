"""What a query string asks for; every fault names its parameter and what would be right."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

import msgspec

from flapd.model.duration import parse_duration
from flapd.model.times import SECOND_NS
from flapd.serve.errors import ApiError
from flapd.store.flap_query import FlapQuery

DEFAULT_LIMIT = 100
LARGEST_LIMIT = 1000

CHOICES: dict[str, tuple[str, ...]] = {
    "kind": ("flap", "drop"),
    "status": ("open", "closed", "lost"),
    "cause": (
        "link",
        "subnet",
        "admin",
        "boot",
        "driver_reload",
        "removed",
        "maintenance",
        "unknown",
    ),
    "seen": ("observed", "unseen", "while_away"),
    "layer": ("physical", "logical"),
}

FLAP_PARAMETERS = frozenset(
    {"port", "guid", "min_down", "since", "until", "limit", "cursor", *CHOICES}
)

RIGHT_TIME = (
    "an RFC 3339 time such as 2026-11-30T03:12:07Z, unix seconds, or an age such as 15m or 2h"
)
_RIGHT_DOWN = "a number of seconds or a duration such as 500ms"
_RIGHT_LIMIT = f"a whole number from 1 to {LARGEST_LIMIT}"
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_WHOLE = re.compile(r"[0-9]{1,18}")
_LAST_UNIX_NS = 253_402_300_800 * SECOND_NS  # the year 10000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_T = TypeVar("_T")


def single_values(pairs: Iterable[tuple[str, str]], known: Collection[str]) -> dict[str, str]:
    """Each parameter once; raises ApiError for one that is unknown, repeated or empty."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise _bad(name, f"there is no such parameter here; known are: {listed}")
        if name in found:
            raise _bad(name, "give it once")
        if not value:
            raise _bad(name, "give it a value or leave it out")
        found[name] = value
    return found


def flap_query(values: Mapping[str, str], now_unix_ns: int) -> FlapQuery:
    """The outages asked for; an age counts back from `now_unix_ns`."""
    since, until = (_time(values, name, now_unix_ns) for name in ("since", "until"))
    if since is not None and until is not None and until < since:
        raise _bad("until", "a time after `since`")
    return FlapQuery(
        since_unix_ns=since,
        until_unix_ns=until,
        port=values.get("port"),
        guid=values.get("guid"),
        **{name: _choice(values, name) for name in CHOICES},
        min_down_ns=_parsed(values, "min_down", _span_ns, _RIGHT_DOWN),
        limit=_parsed(values, "limit", _limit, _RIGHT_LIMIT) or DEFAULT_LIMIT,
        cursor=values.get("cursor"),
    )


def span_seconds(values: Mapping[str, str], name: str, default: float, longest: float) -> float:
    """A duration above 0 and at most `longest` seconds."""
    span = _parsed(values, name, _span_ns, _RIGHT_DOWN)
    seconds = default if span is None else span / SECOND_NS
    if not 0 < seconds <= longest:
        raise _bad(name, f"more than 0 and at most {longest:g} seconds")
    return seconds


def whole_number(values: Mapping[str, str], name: str, default: int) -> int:
    found = _parsed(values, name, _whole, "a whole number, not negative")
    return default if found is None else found


def _bad(name: str, right: str) -> ApiError:
    return ApiError("bad_parameter", f"{name}: {right}", name)


def _parsed(
    values: Mapping[str, str], name: str, parse: Callable[[str], _T], right: str
) -> _T | None:
    raw = values.get(name)
    if raw is None:
        return None
    try:
        return parse(raw)
    except ValueError:
        raise _bad(name, right) from None


def _choice(values: Mapping[str, str], name: str) -> Any:
    """One of the contract's choices, which are more than this version tells."""
    raw = values.get(name)
    if raw is not None and raw not in CHOICES[name]:
        raise _bad(name, "one of " + ", ".join(CHOICES[name]))
    return raw


def _time(values: Mapping[str, str], name: str, now_unix_ns: int) -> int | None:
    return _parsed(values, name, lambda raw: unix_ns(raw, now_unix_ns), RIGHT_TIME)


def unix_ns(raw: str, now_unix_ns: int) -> int:
    """RFC 3339, unix seconds or an age, as unix time; raises ValueError for anything else."""
    if _NUMBER.fullmatch(raw):
        return _on_the_calendar(_decimal_ns(raw))
    if "T" in raw or "t" in raw:
        return _on_the_calendar(_rfc3339_ns(raw))
    return max(0, now_unix_ns - parse_duration(raw).ns)


def _decimal_ns(raw: str) -> int:
    """Exact: a float holds unix time to 200 ns only."""
    whole, _, fraction = raw.partition(".")
    return int(whole) * SECOND_NS + int(fraction.ljust(9, "0"))


def _rfc3339_ns(raw: str) -> int:
    try:
        moment = msgspec.convert(raw, datetime)
    except msgspec.ValidationError:
        raise ValueError(RIGHT_TIME) from None
    if moment.tzinfo is None:
        raise ValueError(RIGHT_TIME)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _on_the_calendar(at_unix_ns: int) -> int:
    if not 0 <= at_unix_ns < _LAST_UNIX_NS:
        raise ValueError(RIGHT_TIME)
    return at_unix_ns


def _span_ns(raw: str) -> int:
    return _decimal_ns(raw) if _NUMBER.fullmatch(raw) else parse_duration(raw).ns


def _limit(raw: str) -> int:
    number = _whole(raw)
    if not 1 <= number <= LARGEST_LIMIT:
        raise ValueError(_RIGHT_LIMIT)
    return number


def _whole(raw: str) -> int:
    if not _WHOLE.fullmatch(raw):
        raise ValueError(raw)
    return int(raw)
