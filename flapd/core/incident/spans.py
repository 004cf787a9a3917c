"""Spans of time, [begin, end] in nanoseconds."""

from collections.abc import Iterable

Span = tuple[int, int]


def union(spans: Iterable[Span]) -> list[Span]:
    """Spans that do not meet and cover the same, in order."""
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def overlap(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
