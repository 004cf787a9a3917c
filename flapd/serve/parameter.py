"""Parameter: one thing that may be asked for, as handlers read it and OpenAPI describes it.

Every fault names its parameter and what would be right.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from flapd.serve.errors import ApiError
from flapd.serve.written import (
    RIGHT_SPAN,
    RIGHT_TIME,
    SPAN_PATTERN,
    TIME_PATTERN,
    span_ns,
    unix_ns,
)

LARGEST_NUMBER = 10**18 - 1
_LONGEST_SPAN = "36500d"

_IS_WHOLE = re.compile(r"[0-9]{1,18}")
_IS_NUMBER = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][-+]?[0-9]{1,3})?")
"""As JSON writes it."""

Parse = Callable[[str, int], Any]
"""What was written, and unix time now, from which ages count; ValueError where it is wrong."""


class Parameter(msgspec.Struct, frozen=True):
    """`schema` accepts everything that `parse` accepts."""

    name: str
    right: str
    schema: dict[str, Any]
    parse: Parse
    default: str | None = None
    """As it would be written."""
    place: Literal["query", "path"] = "query"
    required: bool = False
    of_jobs: bool = False
    """For those alone who may see what belongs to jobs."""


def text(name: str, right: str, place: Literal["query", "path"] = "query") -> Parameter:
    return Parameter(
        name,
        right,
        {"type": "string", "minLength": 1},
        lambda raw, _now: raw,
        place=place,
        required=place == "path",
    )


def choice(name: str, choices: Sequence[str]) -> Parameter:
    def parse(raw: str, _now_unix_ns: int) -> str:
        if raw not in choices:
            raise ValueError(raw)
        return raw

    right = "one of " + ", ".join(choices)
    return Parameter(name, right, {"type": "string", "enum": list(choices)}, parse)


def flag(name: str) -> Parameter:
    """False unless asked for."""

    def parse(raw: str, _now_unix_ns: int) -> bool:
        if raw not in ("true", "false"):
            raise ValueError(raw)
        return raw == "true"

    return Parameter(name, "true or false", {"type": "boolean"}, parse, "false")


def instant(name: str) -> Parameter:
    """Unix time in ns."""
    return Parameter(name, RIGHT_TIME, {"type": "string", "pattern": TIME_PATTERN}, unix_ns)


def span(
    name: str,
    *,
    default: str | None = None,
    shortest: str = "0s",
    longest: str = _LONGEST_SPAN,
) -> Parameter:
    """Nanoseconds."""
    low_ns, high_ns = span_ns(shortest), span_ns(longest)

    def parse(raw: str, _now_unix_ns: int) -> int:
        found_ns = span_ns(raw)
        if not low_ns <= found_ns <= high_ns:
            raise ValueError(raw)
        return found_ns

    is_bounded = low_ns > 0 or longest != _LONGEST_SPAN
    right = f"{RIGHT_SPAN}, from {shortest} to {longest}" if is_bounded else RIGHT_SPAN
    return Parameter(name, right, {"type": "string", "pattern": SPAN_PATTERN}, parse, default)


def whole(
    name: str, low: int = 0, high: int = LARGEST_NUMBER, default: int | None = None
) -> Parameter:
    def parse(raw: str, _now_unix_ns: int) -> int:
        if not _IS_WHOLE.fullmatch(raw) or not low <= int(raw) <= high:
            raise ValueError(raw)
        return int(raw)

    right = f"a whole number from {low}" + (f" to {high}" if high < LARGEST_NUMBER else " on")
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Parameter(name, right, schema, parse, None if default is None else str(default))


def number(name: str, low: float, high: float) -> Parameter:
    def parse(raw: str, _now_unix_ns: int) -> float:
        if not _IS_NUMBER.fullmatch(raw) or not low <= float(raw) <= high:
            raise ValueError(raw)
        return float(raw)

    right = f"a number from {low:g} to {high:g}"
    return Parameter(name, right, {"type": "number", "minimum": low, "maximum": high}, parse)


def names(name: str, right: str) -> Parameter:
    """Names between commas."""

    def parse(raw: str, _now_unix_ns: int) -> tuple[str, ...]:
        found = tuple(raw.split(","))
        if not all(found):
            raise ValueError(raw)
        return found

    return Parameter(name, right, {"type": "string", "pattern": "^[^,]+(?:,[^,]+)*$"}, parse)


def of_jobs(parameter: Parameter) -> Parameter:
    """The same, for those who may see what belongs to jobs."""
    return msgspec.structs.replace(parameter, of_jobs=True)


def needed(parameter: Parameter) -> Parameter:
    """The same, and it has to be given."""
    return msgspec.structs.replace(parameter, required=True)


def read_parameters(
    known: Iterable[Parameter], pairs: Iterable[tuple[str, str]], now_unix_ns: int
) -> dict[str, Any]:
    """Every known parameter of a query string, as given or its default; ApiError for any fault."""
    by_name = {parameter.name: parameter for parameter in known if parameter.place == "query"}
    written = _once_each(by_name, pairs)
    return {
        name: _parsed(parameter, written.get(name, parameter.default), now_unix_ns)
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


def _parsed(parameter: Parameter, raw: str | None, now_unix_ns: int) -> Any:
    if raw is None:
        if parameter.required:
            raise bad(parameter.name, f"{parameter.right} is needed")
        return None
    try:
        return parameter.parse(raw, now_unix_ns)
    except ValueError:
        raise bad(parameter.name, parameter.right) from None


def bad(name: str, right: str) -> ApiError:
    return ApiError("bad_parameter", f"{name}: {right}", name)
