"""HistoryReader: questions to the history, from any thread, while it is being written."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import structlog

from flapd.core.fabric.view import COUNTED_CAUSES
from flapd.model.event import Event, Outage
from flapd.store.black_box import BlackBox, read_black_box
from flapd.store.database import (
    HistoryCorruptError,
    bytes_on_disk,
    connect_reader,
    told,
    transaction,
)
from flapd.store.flap_query import FlapPage, FlapQuery, find_flaps
from flapd.store.summary import Summary, summarise

_log = structlog.get_logger("flapd.history")
_EVENTS = msgspec.json.Decoder(Event)
_FLAPS_PER_PORT = f"""
SELECT key, count(*) FROM flaps
WHERE down_unix_ns >= ?
    AND facet IN (SELECT facet FROM facets WHERE cause IN ({", ".join("?" * len(COUNTED_CAUSES))}))
GROUP BY key
"""  # noqa: S608 - only question marks are put in


class HistoryReader:
    """Reads a history that exists; each thread gets a connection of its own.

    All its methods raise HistoryError where the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with told(self._path):
            connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
            if connection is None:
                connection = connect_reader(self._path)
                self._local.connection = connection
                self._opened.append(connection)
            yield connection

    def flaps(self, query: FlapQuery) -> FlapPage:
        """One page of outages, newest first; FlapdError where its cursor is malformed."""
        with self._connection() as connection, transaction(connection, "BEGIN"):
            return find_flaps(connection, query)

    def flap(self, flap_id: str) -> Outage | None:
        with self._connection() as connection:
            row = connection.execute("SELECT body FROM flaps WHERE id = ?", (flap_id,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=Outage)

    def flaps_per_port(self, since_unix_ns: int) -> dict[str, int]:
        """Port key -> outages of causes that count, that began at or after `since_unix_ns`."""
        with self._connection() as connection:
            return dict(connection.execute(_FLAPS_PER_PORT, (since_unix_ns, *COUNTED_CAUSES)))

    def black_box(self, flap_id: str) -> BlackBox | None:
        """The samples around an outage, so far; None where none are kept and none are to come."""
        try:
            with self._connection() as connection, transaction(connection, "BEGIN"):
                return read_black_box(connection, flap_id)
        except HistoryCorruptError as error:
            _log.error("black_box_damaged", flap=flap_id, error=str(error))
            return None

    def summary(self, since_unix_ns: int, until_unix_ns: int) -> Summary:
        """Outages that overlap the span, added up by port and cause."""
        with self._connection() as connection, transaction(connection, "BEGIN"):
            return summarise(connection, since_unix_ns, until_unix_ns)

    def history_bytes(self) -> int:
        """On the disk: database and write-ahead log."""
        return bytes_on_disk(self._path)

    def first_seq(self) -> int:
        """Sequence number of the oldest event that is kept; 0 where there is none.

        Who resumes before it misses what retention removed.
        """
        with self._connection() as connection:
            (seq,) = connection.execute("SELECT min(seq) FROM journal").fetchone()
        return seq or 0

    def last_seq(self) -> int:
        """Sequence number of the newest event there ever was; 0 before the first."""
        question = "SELECT seq FROM sqlite_sequence WHERE name = 'journal'"
        with self._connection() as connection:
            row = connection.execute(question).fetchone()
        return 0 if row is None else int(row[0])

    def events_after(self, seq: int, limit: int) -> list[tuple[int, Event]]:
        """The next events in the order in which they were committed."""
        question = "SELECT seq, body FROM journal WHERE seq > ? ORDER BY seq LIMIT ?"
        with self._connection() as connection:
            rows = connection.execute(question, (seq, limit)).fetchall()
        return [(number, _EVENTS.decode(body)) for number, body in rows]

    def close(self) -> None:
        """Close the connections of all threads; none may be reading."""
        while self._opened:
            self._opened.pop().close()
