"""Lifetime: how long the history has lived, whatever the wall clock says.

What is kept for a year must not vanish because a clock was set a year ahead, nor stay for
ever because it began in 1970. So nothing expires by its date. The history counts the time
it has lived, by the monotonic clock; between two boots, where that clock tells nothing, by
the wall clock, and by at most a day. From time to time it writes down how far its journal
had come; what was there at a mark is at least as old as the mark.
"""

import sqlite3

import msgspec

from flapd.model.times import SECOND_NS

_MOST_BETWEEN_BOOTS_NS = 86_400 * SECOND_NS
_MARK_EVERY_NS = 3_600 * SECOND_NS


class Now(msgspec.Struct, frozen=True):
    """Both clocks at one moment of one boot."""

    boot: str
    monotonic_ns: int
    unix_ns: int


class Expired(msgspec.Struct, frozen=True):
    """The last of those that lived long enough; 0 = none did."""

    last_seq: int
    last_segment: int


def elapsed_ns(then: Now, now: Now) -> int:
    """Time that has certainly passed, except that a boot with a wrong clock can add a day."""
    if then.boot == now.boot:
        return max(0, now.monotonic_ns - then.monotonic_ns)
    return max(0, min(now.unix_ns - then.unix_ns, _MOST_BETWEEN_BOOTS_NS))


def live_on(connection: sqlite3.Connection, now: Now) -> None:
    """Counts the time since the last call, and marks how far the journal has come."""
    lived = connection.execute("SELECT lived_ns, boot, monotonic_ns, unix_ns FROM lived").fetchone()
    lived_ns = 0 if lived is None else lived[0] + elapsed_ns(Now(*lived[1:]), now)
    connection.execute(
        "INSERT OR REPLACE INTO lived VALUES (1, ?, ?, ?, ?)",
        (lived_ns, now.boot, now.monotonic_ns, now.unix_ns),
    )
    (marked_ns,) = connection.execute("SELECT max(lived_ns) FROM ages").fetchone()
    if marked_ns is None or lived_ns - marked_ns >= _MARK_EVERY_NS:
        connection.execute(
            "INSERT INTO ages SELECT ?, ifnull(sum(seq) FILTER (WHERE name = 'journal'), 0), "
            "ifnull(sum(seq) FILTER (WHERE name = 'segments'), 0) FROM sqlite_sequence",
            (lived_ns,),
        )


def expired(connection: sqlite3.Connection, keep_ns: int) -> Expired:
    """What the history has had for longer than `keep_ns`."""
    row = connection.execute(
        "SELECT last_seq, last_segment FROM ages "
        "WHERE lived_ns <= (SELECT lived_ns FROM lived) - ? ORDER BY lived_ns DESC LIMIT 1",
        (keep_ns,),
    ).fetchone()
    return Expired(0, 0) if row is None else Expired(*row)
