"""FlapQuery: which outages of the history, and the index ranges that hold them.

Outages are told newest first, by (down_unix_ns, id). Within one facet (schema.py) an
index holds them in that order, and the facet bounds how long they lasted; so what
overlaps a span, or lasted long enough, is one short range of each facet. The ranges are
merged lazily: one page costs its own rows and one row for each facet.
"""

import base64
import binascii
import heapq
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import islice

import msgspec

from flapd.model.errors import FlapdError
from flapd.model.event import Cause, Kind, Layer, Outage, Seen, Status
from flapd.store.black_box import with_black_box
from flapd.store.flap_row import end_unix_ns, length_class, longest_ns

_LOWEST = -(2**63)
_HIGHEST = 2**63 - 1
_FACET_COLUMNS = ("kind", "status", "cause", "layer", "seen")

_Position = tuple[int, str]
_Row = tuple[int, str, bytes]


class FlapQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filters that all must hold; None = any. The span selects what overlaps it."""

    since_unix_ns: int | None = None
    until_unix_ns: int | None = None
    port: str | None = None
    guid: str | None = None
    kind: Kind | None = None
    status: Status | None = None
    cause: Cause | None = None
    layer: Layer | None = None
    seen: Seen | None = None
    min_down_ns: int | None = None
    """It can have been down this long; what is not known to have ended counts."""
    limit: int = 100
    cursor: str | None = None
    """`next` of the page before."""


class FlapPage(msgspec.Struct, frozen=True):
    """Outages newest first; `next` is None on the last page."""

    items: list[Outage]
    next: str | None
    with_black_box: frozenset[str] = frozenset()
    """Ids of those of which samples are kept."""


def matches(query: FlapQuery, outage: Outage) -> bool:
    """Whether an outage that is not in the history is one that was asked for."""
    wanted = {name: getattr(query, name) for name in ("port", "guid", *_FACET_COLUMNS)}
    return (
        all(value is None or value == getattr(outage, name) for name, value in wanted.items())
        and (query.since_unix_ns is None or end_unix_ns(outage) >= query.since_unix_ns)
        and (query.until_unix_ns is None or outage.down.earliest_unix_ns <= query.until_unix_ns)
        and (
            query.min_down_ns is None
            or outage.down_ns_max is None
            or outage.down_ns_max >= query.min_down_ns
        )
    )


class _Condition(msgspec.Struct):
    """A conjunction and its arguments."""

    terms: list[str] = msgspec.field(default_factory=list)
    arguments: list[int | str] = msgspec.field(default_factory=list)

    def add(self, term: str, *arguments: int | str | None) -> None:
        """Add it where its arguments are known; integers are clamped to what SQLite holds."""
        given = [_clamped(argument) for argument in arguments if argument is not None]
        if len(given) == len(arguments):
            self.terms.append(term)
            self.arguments.extend(given)

    def __str__(self) -> str:
        return " AND ".join(self.terms) or "1"


def _clamped(argument: int | str) -> int | str:
    if isinstance(argument, int):
        return max(_LOWEST, min(argument, _HIGHEST))
    return argument


def find_flaps(connection: sqlite3.Connection, query: FlapQuery) -> FlapPage:
    """One page; FlapdError where the cursor is none of ours."""
    after = None if query.cursor is None else decode_cursor(query.cursor)
    with ExitStack() as open_ranges:
        ranges = [
            open_ranges.enter_context(closing(_range(connection, condition)))
            for condition in _conditions(connection, query, after)
        ]
        merged: Iterator[_Row] = heapq.merge(*ranges, key=_position, reverse=True)
        rows = list(islice(merged, query.limit + 1))
    page = rows[: query.limit]
    items = [msgspec.json.decode(body, type=Outage) for _down, _id, body in page]
    more = len(rows) > len(page) and page
    return FlapPage(
        items,
        encode_cursor(_position(page[-1])) if more else None,
        with_black_box(connection, [flap_id for _down, flap_id, _body in page]),
    )


def _position(row: _Row) -> _Position:
    return row[:2]


def _range(connection: sqlite3.Connection, condition: _Condition) -> sqlite3.Cursor:
    return connection.execute(
        # Only terms written in this module; every value is an argument.
        f"SELECT down_unix_ns, id, body FROM flaps WHERE {condition} "  # noqa: S608
        "ORDER BY down_unix_ns DESC, id DESC",
        condition.arguments,
    )


def _conditions(
    connection: sqlite3.Connection, query: FlapQuery, after: _Position | None
) -> Iterator[_Condition]:
    """One for each index range that the answer lies in."""
    if not _is_filtered(query):
        yield _row_condition(query, after)
        return
    for facet, klass in _facets(connection, query):
        condition = _row_condition(query, after)
        condition.add("facet = ?", facet)
        longest = longest_ns(klass)
        if query.since_unix_ns is not None and longest is not None:
            condition.add("down_unix_ns >= ?", query.since_unix_ns - longest)
        yield condition


def _is_filtered(query: FlapQuery) -> bool:
    """The answer is not simply a range of time."""
    unfiltered = FlapQuery(
        until_unix_ns=query.until_unix_ns, limit=query.limit, cursor=query.cursor
    )
    return query != unfiltered


def _facets(connection: sqlite3.Connection, query: FlapQuery) -> list[tuple[int, int]]:
    condition = _Condition()
    for column in _FACET_COLUMNS:
        condition.add(f"{column} = ?", getattr(query, column))
    if query.min_down_ns is not None:
        # The length of what was lost is not known: its class tells when it was lost.
        condition.add("(length_class >= ? OR status = 'lost')", length_class(query.min_down_ns))
    return connection.execute(
        f"SELECT facet, length_class FROM facets WHERE {condition}",  # noqa: S608
        condition.arguments,
    ).fetchall()


def _row_condition(query: FlapQuery, after: _Position | None) -> _Condition:
    condition = _Condition()
    condition.add("port = ?", query.port)
    condition.add("guid = ?", query.guid)
    condition.add("end_unix_ns >= ?", query.since_unix_ns)
    condition.add("down_unix_ns <= ?", query.until_unix_ns)
    condition.add("(down_ns_max IS NULL OR down_ns_max >= ?)", query.min_down_ns)
    if after is not None:
        condition.add("(down_unix_ns, id) < (?, ?)", *after)
    return condition


def encode_cursor(position: _Position) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def decode_cursor(cursor: str) -> _Position:
    """The position that `next` of a page stands for."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
        return msgspec.json.decode(raw, type=_Position)
    except (binascii.Error, ValueError) as error:
        raise FlapdError(f"cursor {cursor!r} is not the `next` of a page") from error
