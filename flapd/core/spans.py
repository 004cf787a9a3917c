"""Spans of time, [begin, end] in nanoseconds, or in seconds."""

from collections.abc import Iterable
from typing import TypeVar

Span = tuple[int, int]

_Time = TypeVar("_Time", int, float)


def union(spans: Iterable[tuple[_Time, _Time]]) -> list[tuple[_Time, _Time]]:
    """Spans that do not meet and cover the same, in order."""
    found: list[tuple[_Time, _Time]] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def length(spans: Iterable[tuple[_Time, _Time]]) -> _Time:
    """Of all of them together, what several cover once."""
    return sum((high - low for low, high in union(spans)), start=0)


def overlap(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
