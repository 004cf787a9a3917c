"""Retention: what goes when the history is old or large, in small steps.

Oldest black boxes first, then revisions that newer ones have replaced, outages and what is told
of jobs last. What to
remove is chosen by a connection that only reads; the writer removes it by number, a few
rows at a time. Totals stand in the checkpoint and stay.
"""

import math
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from flapd.store.lifetime import expired
from flapd.store.settings import HistorySettings
from flapd.store.shelf import SHELVES
from flapd.store.span import OPEN_END_UNIX_NS

ROWS_A_STEP = 50
PAGES_A_STEP = 64
_ROOM_BYTES = 8 << 20
"""For the write-ahead log until it is written out, and for what comes between two looks."""

Step = Callable[[sqlite3.Connection], None]
"""To be done by the writer, in one transaction."""

_HIGHEST = 2**63 - 1
_LINKS = tuple(
    f"DELETE FROM {table} WHERE {column} = (SELECT id FROM journal WHERE seq = ?) "  # noqa: S608
    f"AND NOT EXISTS (SELECT 1 FROM incidents WHERE id = {column})"
    for table, column in (
        ("flap_incidents", "incident"),
        ("flap_jobs", "incident"),
        ("incident_nodes", "incident"),
        ("incident_jobs", "incident"),
        ("superseded", "by_incident"),
    )
)
"""Of incidents that are gone."""

_Numbers = Sequence[tuple[int]]
_Drop = Callable[[sqlite3.Connection, _Numbers], None]

_NEXT = """
SELECT seq, EXISTS (
    SELECT 1 FROM journal AS newer WHERE newer.id = entry.id AND newer.revision > entry.revision
) FROM journal AS entry WHERE seq > ? ORDER BY seq LIMIT 100
"""


class Space(msgspec.Struct, frozen=True):
    """Of the database file, in bytes."""

    used: int
    free: int


def space(connection: sqlite3.Connection) -> Space:
    page_size, pages, free = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_size", "page_count", "freelist_count")
    )
    return Space((pages - free) * page_size, free * page_size)


class Retention:
    """Chooses what goes next."""

    def __init__(self, settings: HistorySettings) -> None:
        self._settings = settings
        self._looked_until = 0
        """Journal entries up to here that were replaced are gone."""

    def steps(self, reader: sqlite3.Connection) -> Iterator[Step]:
        """Each is to be done before the next is asked for."""
        settings = self._settings
        boxes_kept_ns = min(settings.keep_black_boxes.ns, settings.keep.ns)
        last_segment = expired(reader, boxes_kept_ns).last_segment
        last_seq = expired(reader, settings.keep.ns).last_seq
        yield from _until_none(lambda: _segments(reader, last_segment))
        yield from _until_none(lambda: _entries(reader, last_seq))
        for choose in (_segments, self._replaced, _entries):
            yield from _until_none(partial(self._if_too_large, reader, choose))
        yield from _vacuum(reader)

    def _if_too_large(
        self, reader: sqlite3.Connection, choose: Callable[[sqlite3.Connection], Step | None]
    ) -> Step | None:
        is_too_large = space(reader).used > self._settings.max_size.bytes - _ROOM_BYTES
        return choose(reader) if is_too_large else None

    def _replaced(self, reader: sqlite3.Connection) -> Step | None:
        """Revisions that a newer one has replaced, the oldest first."""
        while rows := reader.execute(_NEXT, (self._looked_until,)).fetchall():
            self._looked_until = rows[-1][0]
            numbers = [(seq,) for seq, is_replaced in rows if is_replaced]
            if numbers:
                return partial(_drop_entries, numbers=numbers)
        return None


def _vacuum(reader: sqlite3.Connection) -> Iterator[Step]:
    """Until no space is free, or none can be given back."""
    before, free = math.inf, space(reader).free
    while 0 < free < before:
        yield _vacuum_a_little
        before, free = free, space(reader).free


def _until_none(choose: Callable[[], Step | None]) -> Iterator[Step]:
    while (step := choose()) is not None:
        yield step


def _segments(reader: sqlite3.Connection, last: int = _HIGHEST) -> Step | None:
    """The oldest, up to the number `last`."""
    question = "SELECT segment FROM segments WHERE segment <= ?"
    return _oldest(reader, question, last, _drop_segments)


def _entries(reader: sqlite3.Connection, last: int = _HIGHEST) -> Step | None:
    """The oldest entries of the journal, and the items that they are the last to tell of."""
    return _oldest(reader, "SELECT seq FROM journal WHERE seq <= ?", last, _drop_items)


def _oldest(reader: sqlite3.Connection, question: str, last: int, drop: _Drop) -> Step | None:
    rows = reader.execute(f"{question} ORDER BY 1 LIMIT {ROWS_A_STEP}", (last,))
    numbers = rows.fetchall()
    return (lambda writer: drop(writer, numbers)) if numbers else None


def _drop_segments(connection: sqlite3.Connection, numbers: _Numbers) -> None:
    connection.executemany("DELETE FROM segments WHERE segment = ?", numbers)


def _drop_items(connection: sqlite3.Connection, numbers: _Numbers) -> None:
    """What is open stays: it is not over yet, however old."""
    for shelf in SHELVES:
        connection.executemany(
            f"DELETE FROM {shelf.table} WHERE id = (SELECT id FROM journal WHERE seq = ?1) "  # noqa: S608
            "AND seq = ?1 AND end_unix_ns < ?2",
            [(seq, OPEN_END_UNIX_NS) for (seq,) in numbers],
        )
    for statement in _LINKS:
        connection.executemany(statement, numbers)
    connection.executemany(
        "DELETE FROM black_boxes WHERE flap = (SELECT id FROM journal WHERE seq = ?) "
        "AND NOT EXISTS (SELECT 1 FROM flaps WHERE id = flap)",
        numbers,
    )
    _drop_entries(connection, numbers)


def _drop_entries(connection: sqlite3.Connection, numbers: _Numbers) -> None:
    connection.executemany("DELETE FROM journal WHERE seq = ?", numbers)


def _vacuum_a_little(connection: sqlite3.Connection) -> None:
    # SQLite gives a row without columns for each page, and after one such row Python takes the
    # statement for done (Modules/_sqlite/cursor.c): hence page by page.
    for _ in range(PAGES_A_STEP):
        connection.execute("PRAGMA incremental_vacuum(1)")
