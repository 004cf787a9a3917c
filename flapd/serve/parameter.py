"""Parameter: one thing that may be asked for, as handlers read it and OpenAPI describes it.

Every fault names its parameter and what would be right.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

import msgspec

from flapd.model.duration import parse_duration
from flapd.model.times import SECOND_NS
from flapd.serve.errors import ApiError

RIGHT_TIME = (
    "an RFC 3339 time such as 2026-11-30T03:12:07Z, unix seconds, or an age such as 15m or 2h"
)
LARGEST_NUMBER = 10**18 - 1

_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"
_DURATION = r"[0-9]{1,5}(?:\.[0-9]{1,9})?(?:ms|s|m|h|d)"
_RFC3339 = (
    r"(?:19[789]|[2-9][0-9]{2})[0-9]-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z"
)
_IS_NUMBER = re.compile(_NUMBER)
_IS_WHOLE = re.compile(r"[0-9]{1,18}")
_LAST_UNIX_NS = 253_402_300_800 * SECOND_NS  # the year 10000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

Parse = Callable[[str, int], Any]
"""What was written, and unix time now, from which ages count; ValueError where it is wrong."""


class Parameter(msgspec.Struct, frozen=True):
    """`schema` accepts nothing that `parse` refuses."""

    name: str
    right: str
    schema: dict[str, Any]
    parse: Parse
    default: Any = None
    place: Literal["query", "path"] = "query"


def text(name: str, right: str, place: Literal["query", "path"] = "query") -> Parameter:
    return Parameter(
        name, right, {"type": "string", "minLength": 1}, lambda raw, _now: raw, place=place
    )


def choice(name: str, choices: Sequence[str]) -> Parameter:
    def parse(raw: str, _now_unix_ns: int) -> str:
        if raw not in choices:
            raise ValueError(raw)
        return raw

    right = "one of " + ", ".join(choices)
    return Parameter(name, right, {"type": "string", "enum": list(choices)}, parse)


def instant(name: str, default: Any = None) -> Parameter:
    """Unix time in ns."""
    pattern = rf"^(?:[0-9]{{1,11}}(?:\.[0-9]{{1,9}})?|{_DURATION}|{_RFC3339})$"
    return Parameter(name, RIGHT_TIME, {"type": "string", "pattern": pattern}, unix_ns, default)


def span(name: str, *, default_ns: int | None = None, longest_ns: int | None = None) -> Parameter:
    """Nanoseconds; with `longest_ns` more than 0 and at most that."""

    def parse(raw: str, _now_unix_ns: int) -> int:
        span_ns = _span_ns(raw)
        if longest_ns is not None and not 0 < span_ns <= longest_ns:
            raise ValueError(raw)
        return span_ns

    right = "a number of seconds or a duration such as 500ms"
    pattern = rf"^(?:{_NUMBER}|{_DURATION})$"
    if longest_ns is not None:
        right += f", more than 0 and at most {longest_ns / SECOND_NS:g} seconds"
        pattern = r"^[1-9][0-9]{0,1}s?$"
    return Parameter(name, right, {"type": "string", "pattern": pattern}, parse, default_ns)


def whole(
    name: str, low: int = 0, high: int = LARGEST_NUMBER, default: int | None = None
) -> Parameter:
    def parse(raw: str, _now_unix_ns: int) -> int:
        if not _IS_WHOLE.fullmatch(raw) or not low <= int(raw) <= high:
            raise ValueError(raw)
        return int(raw)

    right = f"a whole number from {low}" + (f" to {high}" if high < LARGEST_NUMBER else " on")
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Parameter(name, right, schema, parse, default)


def names(name: str, right: str) -> Parameter:
    """Names between commas."""

    def parse(raw: str, _now_unix_ns: int) -> tuple[str, ...]:
        found = tuple(raw.split(","))
        if not all(found):
            raise ValueError(raw)
        return found

    return Parameter(name, right, {"type": "string", "pattern": "^[^,]+(?:,[^,]+)*$"}, parse)


def read_parameters(
    known: Iterable[Parameter], pairs: Iterable[tuple[str, str]], now_unix_ns: int
) -> dict[str, Any]:
    """Every known parameter of a query string, as given or its default; ApiError for any fault."""
    by_name = {parameter.name: parameter for parameter in known if parameter.place == "query"}
    written = _once_each(by_name, pairs)
    return {
        name: _parsed(parameter, written[name], now_unix_ns)
        if name in written
        else parameter.default
        for name, parameter in by_name.items()
    }


def _once_each(by_name: dict[str, Parameter], pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in by_name:
            listed = ", ".join(sorted(by_name)) or "none"
            raise bad(name, f"there is no such parameter here; known are: {listed}")
        if name in found:
            raise bad(name, "give it once")
        if not value:
            raise bad(name, "give it a value or leave it out")
        found[name] = value
    return found


def _parsed(parameter: Parameter, raw: str, now_unix_ns: int) -> Any:
    try:
        return parameter.parse(raw, now_unix_ns)
    except ValueError:
        raise bad(parameter.name, parameter.right) from None


def bad(name: str, right: str) -> ApiError:
    return ApiError("bad_parameter", f"{name}: {right}", name)


def unix_ns(raw: str, now_unix_ns: int) -> int:
    """RFC 3339, unix seconds or an age, as unix time; raises ValueError for anything else."""
    if _IS_NUMBER.fullmatch(raw):
        return _on_the_calendar(_decimal_ns(raw))
    if "T" in raw or "t" in raw:
        return _on_the_calendar(_rfc3339_ns(raw))
    return max(0, now_unix_ns - parse_duration(raw).ns)


def _decimal_ns(raw: str) -> int:
    """Exact: a float holds unix time to 200 ns only."""
    whole_seconds, _, fraction = raw.partition(".")
    return int(whole_seconds) * SECOND_NS + int(fraction.ljust(9, "0"))


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
    return _decimal_ns(raw) if _IS_NUMBER.fullmatch(raw) else parse_duration(raw).ns
