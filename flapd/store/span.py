"""Span: from when to when an item lasts, as the history's columns have it (unix time in ns)."""

from typing import Any

_LOWEST = -(2**63)
_HIGHEST = 2**63 - 1

OPEN_END_UNIX_NS = _HIGHEST
"""End of what is open: it overlaps every span that begins after it, and never expires."""
UNKNOWN_END_UNIX_NS = _HIGHEST - 1
"""Of what nobody can date: it overlaps every span as well, and expires."""
UNBOUNDED_CLASS = 99
"""Length class of both."""


def length_class(length_ns: int) -> int:
    """Lengths below 4**n have a class of at most n; a longer one never has a lower class."""
    return (max(0, length_ns).bit_length() + 1) // 2


def longest_ns(klass: int) -> int | None:
    """The length that no item of this class reaches; None = it has no bound."""
    return None if klass == UNBOUNDED_CLASS else 4**klass


def class_of(begin_unix_ns: int, end_unix_ns: int) -> int:
    if end_unix_ns >= UNKNOWN_END_UNIX_NS:
        return UNBOUNDED_CLASS
    return length_class(end_unix_ns - begin_unix_ns)


def clamped(value: Any) -> Any:
    """An integer as SQLite can hold it; everything else as it is."""
    if isinstance(value, int) and not _LOWEST <= value <= _HIGHEST:
        return max(_LOWEST, min(value, _HIGHEST))
    return value
