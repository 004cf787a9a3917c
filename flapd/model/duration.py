"""Duration: a span of time as people write it in a configuration."""

import re
from math import isfinite
from typing import Any

import msgspec

from flapd.model.times import SECOND_NS

_UNIT_NS = {
    "ms": 1_000_000,
    "s": SECOND_NS,
    "m": 60 * SECOND_NS,
    "h": 3600 * SECOND_NS,
    "d": 86400 * SECOND_NS,
}
_WRITTEN = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(ms|s|m|h|d)")
_LONGEST_NS = 100 * 366 * 86400 * SECOND_NS

RIGHT_DURATION = 'a number of seconds or a string such as "100ms", "2s", "15m", "12h", "7d"'


class Duration(msgspec.Struct, frozen=True, order=True):
    """A span of time, not negative."""

    ns: int

    @property
    def seconds(self) -> float:
        return self.ns / SECOND_NS

    def __str__(self) -> str:
        for unit in ("d", "h", "m", "s"):
            if self.ns and self.ns % _UNIT_NS[unit] == 0:
                return f"{self.ns // _UNIT_NS[unit]}{unit}"
        return f"{self.ns / _UNIT_NS['ms']:g}ms"


def parse_duration(raw: Any) -> Duration:
    """A number of seconds or a string with a unit; raises ValueError saying what would be right."""
    if isinstance(raw, str):
        written = _WRITTEN.fullmatch(raw.strip())
        ns = round(float(written[1]) * _UNIT_NS[written[2]]) if written else -1
    elif isinstance(raw, (int, float)) and not isinstance(raw, bool) and isfinite(raw):
        ns = round(raw * SECOND_NS)
    else:
        ns = -1
    if not 0 <= ns <= _LONGEST_NS:
        raise ValueError(RIGHT_DURATION)
    return Duration(ns)
