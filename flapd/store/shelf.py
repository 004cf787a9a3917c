"""Shelf: where the history keeps the last revisions of one kind of item, and how they are found.

Items are told newest first, by (position, id). `facets` of a shelf holds each combination of
classifying columns that ever occurred, some hundred at most, with the length class of the items
(span.py). Within one facet an index holds the items in their order, and the facet bounds how long
they lasted; so what overlaps a span is one short range of each facet. The ranges are merged
lazily: one page costs its own rows and one row for each facet, whatever the filter.
"""

import heapq
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from functools import cache
from itertools import groupby, islice
from typing import Any, NamedTuple, Protocol

import msgspec

from flapd.store.cursor import Position, decode_cursor
from flapd.store.span import clamped, longest_ns

Row = tuple[int, str, bytes]
"""Position, id, body."""


class Shelf(NamedTuple):
    table: str
    facets: str
    classes: tuple[str, ...]
    """Columns of `facets`, and the names by which a query asks for them."""
    keys: tuple[str, ...]
    """Likewise of `table`: each has an index with facet and position."""
    position: str = "begin_unix_ns"
    """Column by which items are in order."""
    begin: str = "begin_unix_ns"
    """Column of the first moment; the last is `end_unix_ns`."""
    id: str = "id"
    facet: str = "facet"
    shown: str = "1"
    """A condition that nearly every row fulfils, and every one that is told."""


FLAPS = Shelf(
    "flaps",
    "facets",
    ("kind", "status", "cause", "layer", "seen"),
    ("node", "port", "guid"),
    "down_unix_ns",
    "down_unix_ns",
)
JOBS = Shelf("jobs", "job_facets", ("kind",), ("node", "job"))
FAULTS = Shelf(
    "faults",
    "fault_facets",
    ("kind",),
    ("node", "job", "rank", "host"),
    "at_unix_ns",
    shown="merged_into IS NULL",
)
STALLS = Shelf("stalls", "stall_facets", ("stall_class",), ("node", "job"))
INCIDENTS = Shelf(
    "incidents",
    "incident_facets",
    ("verdict", "regime", "status"),
    (),
    shown="NOT EXISTS (SELECT 1 FROM superseded WHERE superseded.incident = incidents.id)",
)

SHELVES = (FLAPS, JOBS, FAULTS, STALLS, INCIDENTS)


class Query(Protocol):
    """What every query has, besides the filters of its shelf: None = any."""

    @property
    def since_unix_ns(self) -> int | None: ...
    @property
    def until_unix_ns(self) -> int | None: ...
    @property
    def limit(self) -> int: ...
    @property
    def cursor(self) -> str | None: ...


class Condition(msgspec.Struct):
    """A conjunction and its arguments. Its terms are ours; every value is an argument."""

    terms: list[str] = msgspec.field(default_factory=list)
    arguments: list[Any] = msgspec.field(default_factory=list)

    def add(self, term: str, *arguments: int | str | None) -> None:
        """Add it where its arguments are known."""
        given = [clamped(argument) for argument in arguments if argument is not None]
        if len(given) == len(arguments):
            self.terms.append(term)
            self.arguments.extend(given)

    def copy(self) -> "Condition":
        return Condition(list(self.terms), list(self.arguments))

    def __str__(self) -> str:
        return " AND ".join(self.terms) or "1"


class Wish(NamedTuple):
    """What a shelf cannot ask of a query by itself."""

    facets: Condition = Condition()
    rows: Condition = Condition()

    @property
    def narrows(self) -> bool:
        return bool(self.facets.terms or self.rows.terms)


def put(
    connection: sqlite3.Connection, shelf: Shelf, facet: Mapping[str, Any], row: Mapping[str, Any]
) -> bool:
    """Puts a revision on the shelf; False where it is not above the one that is there."""
    number = facet_number(connection, shelf, facet)
    values = [clamped(value) for value in row.values()]
    statement = _row_statement(shelf.table, tuple(row))
    return connection.execute(statement, [number, *values]).rowcount > 0


def facet_number(connection: sqlite3.Connection, shelf: Shelf, facet: Mapping[str, Any]) -> int:
    """Of a combination of classifying columns, which exists from then on."""
    values = tuple(facet.values())
    connection.execute(_facet_statement(shelf.facets, tuple(facet)), values)
    found = connection.execute(_number_statement(shelf.facets, tuple(facet)), values)
    (number,) = found.fetchone()
    return int(number)


@cache
def _facet_statement(table: str, names: tuple[str, ...]) -> str:
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608


@cache
def _number_statement(table: str, names: tuple[str, ...]) -> str:
    return f"SELECT facet FROM {table} WHERE {' AND '.join(f'{name} = ?' for name in names)}"  # noqa: S608


@cache
def _row_statement(table: str, names: tuple[str, ...]) -> str:
    every = ("facet", *names)
    updates = ", ".join(f"{name} = excluded.{name}" for name in every if name != "id")
    return (
        f"INSERT INTO {table} ({', '.join(every)}) VALUES ({', '.join('?' * len(every))}) "  # noqa: S608
        f"ON CONFLICT (id) DO UPDATE SET {updates} WHERE excluded.revision > {table}.revision"
    )


def find(
    connection: sqlite3.Connection, shelf: Shelf, query: Query, wish: Wish | None = None
) -> tuple[list[Row], bool]:
    """Rows of one page, and whether there are more; FlapdError where the cursor is none of ours."""
    after = None if query.cursor is None else decode_cursor(query.cursor)
    with ExitStack() as open_ranges:
        ranges = [
            open_ranges.enter_context(closing(_range(connection, shelf, condition)))
            for condition in _conditions(connection, shelf, query, wish or Wish(), after)
        ]
        merged: Iterator[Row] = heapq.merge(*ranges, key=position_of, reverse=True)
        distinct = (row for _, (row, *_others) in groupby(merged, key=position_of))
        rows = list(islice(distinct, query.limit + 1))
    return rows[: query.limit], len(rows) > query.limit


def position_of(row: Row) -> Position:
    return row[:2]


def _range(connection: sqlite3.Connection, shelf: Shelf, condition: Condition) -> sqlite3.Cursor:
    return connection.execute(
        f"SELECT {shelf.position}, {shelf.id}, body FROM {shelf.table} "  # noqa: S608
        f"WHERE {condition} ORDER BY {shelf.position} DESC, {shelf.id} DESC",
        condition.arguments,
    )


def _conditions(
    connection: sqlite3.Connection, shelf: Shelf, query: Query, wish: Wish, after: Position | None
) -> Iterator[Condition]:
    """One for each index range that the answer lies in."""
    if not _is_filtered(shelf, query, wish):
        yield _row_condition(shelf, query, wish, after)
        return
    for facet, klass in _facets(connection, shelf, query, wish):
        condition = _row_condition(shelf, query, wish, after)
        condition.add(f"{shelf.facet} = ?", facet)
        longest = longest_ns(klass)
        if longest is not None:
            _bound(condition, shelf, query, longest)
        yield condition


def _bound(condition: Condition, shelf: Shelf, query: Query, longest_ns: int) -> None:
    """No item of this facet reaches further than so from its position."""
    if query.since_unix_ns is not None:
        condition.add(f"{shelf.position} >= ?", query.since_unix_ns - longest_ns)
    if query.until_unix_ns is not None and shelf.begin != shelf.position:
        condition.add(f"{shelf.position} <= ?", query.until_unix_ns + longest_ns)


def _is_filtered(shelf: Shelf, query: Query, wish: Wish) -> bool:
    """The answer is not simply a range of positions."""
    named = [getattr(query, name) for name in (*shelf.classes, *shelf.keys)]
    is_ranged = query.until_unix_ns is not None and shelf.begin != shelf.position
    is_named = any(value is not None for value in (*named, query.since_unix_ns))
    return is_named or is_ranged or wish.narrows


def _facets(
    connection: sqlite3.Connection, shelf: Shelf, query: Query, wish: Wish
) -> list[tuple[int, int]]:
    condition = wish.facets.copy()
    for column in shelf.classes:
        condition.add(f"{column} = ?", getattr(query, column))
    return connection.execute(
        f"SELECT facet, length_class FROM {shelf.facets} WHERE {condition}",  # noqa: S608
        condition.arguments,
    ).fetchall()


def _row_condition(shelf: Shelf, query: Query, wish: Wish, after: Position | None) -> Condition:
    condition = wish.rows.copy()
    condition.add(shelf.shown)
    _add_keys(condition, shelf, query)
    condition.add("end_unix_ns >= ?", query.since_unix_ns)
    condition.add(f"{shelf.begin} <= ?", query.until_unix_ns)
    if after is not None:
        condition.add(f"({shelf.position}, {shelf.id}) < (?, ?)", *after)
    return condition


def _add_keys(condition: Condition, shelf: Shelf, query: Query) -> None:
    """Of one node all else is looked through: a port's name is the same on every node."""
    of_node = getattr(query, "node", None) is not None
    for column in shelf.keys:
        written = f"+{column}" if of_node and column != "node" else column
        condition.add(f"{written} = ?", getattr(query, column))
