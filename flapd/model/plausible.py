"""Plausible: whether the numbers of a message are such as can be; who tells them is not trusted.

What passes can be reckoned with, and written down: sums of two times fit into 64 bits and the
calendar, counts can be added up, and no time is endless or no number where that means nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from math import inf
from typing import Any

import msgspec
from msgspec.structs import astuple

from flapd.model.given import Given
from flapd.model.incident import Incident
from flapd.model.policy import POLICY_TYPES

LARGEST_NUMBER = 1e15
"""Of seconds, or of bytes a second."""
_LARGEST_TIME_NS = 2**62
"""In the year 2116."""
_LOWEST_NUMBER = -(2**60)
"""As a time 36 years before: a wall clock may stand at its beginning while a node has long run."""
_LARGEST_INTEGER = 2**60
_LARGEST_COUNT = 2**40
"""More than any counter of 32 bits counts before somebody looks."""
_LARGEST_FIELD = 31
"""Of a queue pair: five bits."""
_LARGEST_SETTING = 2**63
"""As an environment variable may have it, with either sign."""
_MOST = {
    "revision": 2**53,
    "count": _LARGEST_COUNT,
    "repeats": _LARGEST_COUNT,
    "gpus": _LARGEST_COUNT,
    "world_size": _LARGEST_COUNT,
    "retry_cnt": _LARGEST_FIELD,
    "timer_floor": _LARGEST_FIELD,
    "extra_tries": _LARGEST_FIELD,
}
"""Of what is reckoned with; none of it is below 0."""
_PLAIN = frozenset((str, bool, type(None)))
_HOLD_MORE: Mapping[type, Callable[[Any], Iterable[Any]]] = {
    tuple: iter,
    dict: dict.values,
    Given: astuple,
}
"""Under one name; any other struct has names of its own."""
_ALLOWED: Mapping[type | None, tuple[type, ...]] = {
    int: (int,),
    float: (float, int),
    bool: (bool,),
    str: (str,),
    None: (float, int, bool, str),
}
"""Of a policy's values by what they should be; None: of one that this version does not know."""


class _Floats(msgspec.Struct, frozen=True):
    lowest: float

    def hold(self, value: float) -> bool:
        return self.lowest <= value <= LARGEST_NUMBER


_OF_EVENTS = _Floats(0.0)
_OF_CLOCKS = _Floats(-LARGEST_NUMBER)


def implausible_event(event: msgspec.Struct) -> str | None:
    """What cannot be in it, in words; None: there is nothing.

    A loss that a node worked out for itself may be endless, and its price then any number: nobody
    reckons with those.
    """
    return _in_struct(event, None if isinstance(event, Incident) else _OF_EVENTS)


def implausible_heartbeat(heartbeat: msgspec.Struct) -> str | None:
    """As of an event; clocks may be off to either side."""
    return _in_struct(heartbeat, _OF_CLOCKS)


def _in_struct(whole: msgspec.Struct, floats: _Floats | None) -> str | None:
    for name, value in zip(whole.__struct_fields__, astuple(whole), strict=True):
        if type(value) in _PLAIN:
            continue
        found = _in_policy(value) if name == "policy" else _in_value(name, value, floats)
        if found is not None:
            return found
    return None


def _in_value(name: str, value: Any, floats: _Floats | None) -> str | None:
    kind = type(value)
    if kind is int:
        lowest, highest = _integers(name)
        return None if lowest <= value <= highest else _said(name, value)
    if kind is float:
        return None if floats is None or floats.hold(value) else _said(name, value)
    if kind in _HOLD_MORE:
        return _in_each(name, _HOLD_MORE[kind](value), floats)
    return None if kind in _PLAIN else _in_struct(value, floats)


def _in_each(name: str, values: Iterable[Any], floats: _Floats | None) -> str | None:
    for value in values:
        found = None if type(value) in _PLAIN else _in_value(name, value, floats)
        if found is not None:
            return found
    return None


@cache
def _integers(name: str) -> tuple[int, int]:
    """The lowest and the highest that a field of this name may have."""
    if name in _MOST:
        return 0, _MOST[name]
    return _LOWEST_NUMBER, _LARGEST_TIME_NS if name.endswith("_ns") else _LARGEST_INTEGER


def _in_policy(policy: Mapping[str, Given[Any]]) -> str | None:
    for name, given in policy.items():
        allowed = _ALLOWED[POLICY_TYPES.get(name)]
        for value in (given.value, given.low, given.high):
            if type(value) not in allowed or not _is_setting(name, value):
                return _said(f"the policy's {name}", value)
    return None


def _is_setting(name: str, value: Any) -> bool:
    """Any timeout may be endless: a job's environment sets what it likes."""
    if name in _MOST:
        return bool(0 <= value <= _MOST[name])
    if isinstance(value, str):
        return True
    return bool(-_LARGEST_SETTING <= value < _LARGEST_SETTING or value == inf)


def _said(name: str, value: Any) -> str:
    return f"{name:.50} is {value!r:.50}"
