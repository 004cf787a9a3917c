"""Black boxes: the samples around each outage, kept with it in the history.

An outage names the slots (slots.py) around its edges; the samples of a port in one slot are
stored once, a segment for each tier, however many outages name them. `wanted` holds the
slots that were not looked for in the ring yet: it is written in the transaction that
commits the outage, so that a kill leaves nothing out.
"""

import sqlite3
import time
from collections.abc import Iterable, Sequence

import msgspec
import structlog

from flapd.model.event import Outage
from flapd.store.ring_layout import RingRow
from flapd.store.segment import SegmentError, unpack_segment
from flapd.store.slots import SLOT_NS, slots_around
from flapd.store.thinning import Row, bounded

MOST_ROWS = 20_000

_IDS_A_QUESTION = 500
"""SQLite before 3.32 takes 999 arguments."""

_log = structlog.get_logger("flapd.black_box")


class Slot(msgspec.Struct, frozen=True):
    """A slot of one port, in one boot."""

    key: str
    boot: str
    number: int


class Segment(msgspec.Struct, frozen=True):
    """What one tier read in a slot."""

    slot: Slot
    tier: str
    columns: tuple[str, ...]
    packed: bytes


class BlackBox(msgspec.Struct, frozen=True):
    """Samples around an outage, in order of time; None where a value was not read then."""

    columns: list[str]
    """`time` (unix, ns: when the sweep began), then names of the catalogue."""
    rows: list[Row]
    pending: bool
    """More is to come."""
    incomplete: bool
    """Samples of some of its time were lost, expired, or are damaged."""


def want_black_box(connection: sqlite3.Connection, outage: Outage, around_ns: int) -> None:
    """Has the samples around this revision of an outage kept."""
    connection.execute("DELETE FROM black_boxes WHERE flap = ?", (outage.id,))
    for span in slots_around(outage, around_ns):
        port = (outage.key, outage.boot)
        connection.execute(
            "INSERT INTO black_boxes VALUES (?, ?, ?, ?, ?, ?)",
            (outage.id, span[0], span[-1], *port, outage.down.wall_offset_ns),
        )
        connection.executemany(
            "INSERT INTO wanted SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM segments "
            "WHERE key = ?1 AND boot = ?2 AND slot = ?3) ON CONFLICT DO NOTHING",
            [(*port, number) for number in span],
        )


def wanted_slots(connection: sqlite3.Connection, boot: str, before: int, limit: int) -> list[Slot]:
    """Slots to look for: those before the slot number `before`, and all of other boots."""
    rows = connection.execute(
        "SELECT key, boot, slot FROM wanted WHERE boot <> ? OR slot < ? "
        "ORDER BY key, boot, slot LIMIT ?",
        (boot, before, limit),
    )
    return [Slot(*row) for row in rows]


def keep_segments(
    connection: sqlite3.Connection, looked_for: Iterable[Slot], found: Iterable[Segment]
) -> None:
    """What was found is kept; what was looked for is not looked for again."""
    for segment in found:
        names = msgspec.json.encode(segment.columns)
        connection.execute("INSERT OR IGNORE INTO column_sets (names) VALUES (?)", (names,))
        slot = segment.slot
        connection.execute(
            "INSERT OR IGNORE INTO segments (key, boot, slot, tier, columns, packed) "
            "SELECT ?, ?, ?, ?, columns, ? FROM column_sets WHERE names = ?",
            (slot.key, slot.boot, slot.number, segment.tier, segment.packed, names),
        )
    connection.executemany(
        "DELETE FROM wanted WHERE key = ? AND boot = ? AND slot = ?",
        [(slot.key, slot.boot, slot.number) for slot in looked_for],
    )


def begin_boxes_at(connection: sqlite3.Connection, first: Slot, around_ns: int) -> None:
    """Where reading of a port began in the slot `first`, its black boxes lack nothing before that.

    One whose outage began earlier does lack something.
    """
    connection.execute(
        "UPDATE black_boxes SET first = ?3 "
        "WHERE key = ?1 AND boot = ?2 AND first < ?3 AND ?3 <= first + ?4",
        (first.key, first.boot, first.number, around_ns // SLOT_NS),
    )


_HAS_SEGMENT = """
EXISTS (
    SELECT 1 FROM segments
    WHERE key = box.key AND boot = box.boot AND slot BETWEEN box.first AND box.last
)
"""


def with_black_box(connection: sqlite3.Connection, flap_ids: Sequence[str]) -> frozenset[str]:
    """Those of these outages of which samples are kept."""
    kept: set[str] = set()
    for start in range(0, len(flap_ids), _IDS_A_QUESTION):
        ids = flap_ids[start : start + _IDS_A_QUESTION]
        marks = ", ".join("?" * len(ids))
        question = f"SELECT flap FROM black_boxes AS box WHERE flap IN ({marks}) AND {_HAS_SEGMENT}"  # noqa: S608
        kept.update(flap_id for (flap_id,) in connection.execute(question, ids))
    return frozenset(kept)


class _Unpacked(msgspec.Struct, frozen=True):
    slot: int
    columns: tuple[str, ...]
    rows: list[RingRow]
    """None of them where they are damaged."""


class _Span(msgspec.Struct, frozen=True):
    first: int
    last: int
    key: str
    boot: str
    wall_offset_ns: int

    @property
    def where(self) -> tuple[str, str, int, int]:
        return self.key, self.boot, self.first, self.last


_SEGMENTS = """
SELECT slot, tier, names, packed FROM segments JOIN column_sets USING (columns)
WHERE key = ? AND boot = ? AND slot BETWEEN ? AND ?
ORDER BY CASE tier WHEN 'fast' THEN 0 WHEN 'slow' THEN 1 ELSE 2 END, slot
"""
_PENDING = "SELECT count(*) FROM wanted WHERE key = ? AND boot = ? AND slot BETWEEN ? AND ?"


def read_black_box(connection: sqlite3.Connection, flap_id: str) -> BlackBox | None:
    """The samples around an outage; None where none are kept and none are to come."""
    spans = [
        _Span(*row)
        for row in connection.execute(
            "SELECT first, last, key, boot, wall_offset_ns FROM black_boxes "
            "WHERE flap = ? ORDER BY first",
            (flap_id,),
        )
    ]
    stored = [segment for span in spans for segment in _segments(connection, span)]
    pending = sum(_pending(connection, span) for span in spans)
    if not stored and not pending:
        return None
    unpacked = [_unpacked(segment) for segment in stored]
    columns = list(dict.fromkeys(name for segment in unpacked for name in segment.columns))
    slots = sum(span.last - span.first + 1 for span in spans)
    found = {segment.slot for segment in unpacked if segment.rows}
    return BlackBox(
        columns=["time", *columns],
        rows=bounded(_table(unpacked, columns, spans[0].wall_offset_ns), MOST_ROWS),
        pending=pending > 0,
        incomplete=len(found) + pending < slots or not all(segment.rows for segment in unpacked),
    )


_Stored = tuple[int, str, bytes, bytes]
"""Slot, tier, names of the columns, rows."""


def _segments(connection: sqlite3.Connection, span: _Span) -> list[_Stored]:
    return connection.execute(_SEGMENTS, span.where).fetchall()


def _pending(connection: sqlite3.Connection, span: _Span) -> int:
    (count,) = connection.execute(_PENDING, span.where).fetchone()
    return int(count)


def _unpacked(stored: _Stored) -> _Unpacked:
    slot, tier, names, packed = stored
    time.sleep(0)  # lets other threads of the agent run
    try:
        columns = msgspec.json.decode(names, type=tuple[str, ...])
        rows = unpack_segment(columns, packed)
    except (SegmentError, msgspec.MsgspecError) as error:
        _log.warning("black_box_damaged", slot=slot, tier=tier, error=str(error))
        return _Unpacked(slot, (), [])
    return _Unpacked(slot, columns, rows)


def _table(segments: Iterable[_Unpacked], columns: Sequence[str], wall_offset_ns: int) -> list[Row]:
    rows: list[Row] = [
        [row.before_ns + wall_offset_ns, *map(row.values.get, columns)]
        for segment in segments
        for row in segment.rows
    ]
    return sorted(rows, key=lambda row: row[0] or 0)
