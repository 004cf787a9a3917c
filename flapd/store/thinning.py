"""Thinning: fewer rows of a table over time, with what was lowest and highest kept."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TypeAlias

Row: TypeAlias = list[int | None]
"""A time, then values; None = not read then."""


def thinned(rows: Iterable[Row], step_ns: int) -> Iterator[Row]:
    """One row a step of time, two where they differ.

    Of the two the first has the lowest of each value and the time of the step's first row,
    the second the highest and the time of its last.
    """
    for _, step in groupby(rows, key=lambda row: (row[0] or 0) // step_ns):
        times, *columns = zip(*step, strict=True)
        known = [[value for value in column if value is not None] for column in columns]
        low: Row = [min(values, default=None) for values in known]
        high: Row = [max(values, default=None) for values in known]
        yield [times[0], *low]
        if low != high:
            yield [times[-1], *high]


def bounded(rows: list[Row], most: int) -> list[Row]:
    """The rows as they are, or thinned to at most `most`."""
    if len(rows) <= most:
        return rows
    span_ns = (rows[-1][0] or 0) - (rows[0][0] or 0)
    return list(thinned(rows, span_ns // (most // 2 - 1) + 1))
