"""SQLite as the history uses it: connections, and its errors in our words."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from flapd.model.errors import FlapdError

_BUSY_SECONDS = 5
_PATIENCE_SECONDS = 0.05
_INCREMENTAL = 2
"""Of PRAGMA auto_vacuum (https://sqlite.org/pragma.html#pragma_auto_vacuum)."""


class HistoryError(FlapdError):
    """The history could not be read or written; what was tried may be tried again."""


class HistoryCorruptError(HistoryError):
    """The file is damaged or no database: trying again is of no use."""


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Any error of SQLite leaves as HistoryError with its message."""
    try:
        yield
    except sqlite3.Error as error:
        # SQLITE_CORRUPT and SQLITE_NOTADB arrive as DatabaseError itself, all else as one of
        # its subclasses. sqlite_errorname would say it plainly, from Python 3.11 on.
        if type(error) is sqlite3.DatabaseError:
            raise HistoryCorruptError(f"{path} is damaged: {error}") from error
        raise HistoryError(f"history {path}: {error}") from error


def connect_writer(path: Path) -> sqlite3.Connection:
    """A connection that has each commit on the disk before it returns."""
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        # A new file can be told before it gets its first page; others: make_shrinkable.
        if connection.execute("PRAGMA page_count").fetchone() == (0,):
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def make_shrinkable(connection: sqlite3.Connection) -> None:
    """Rewrites a file that was made without the means to give space back; once in its life.

    SQLite writes it beside the old one and changes over at once. Where the disk has no room for
    that the file is left as it is, and its free space is only used again.
    """
    (auto_vacuum,) = connection.execute("PRAGMA auto_vacuum").fetchone()
    if auto_vacuum != _INCREMENTAL:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        with suppress(sqlite3.OperationalError):
            connection.execute("VACUUM")


def write_out(path: Path) -> None:
    """Moves what the write-ahead log holds into the database, and makes the log empty.

    Most of it without keeping the writer waiting. Where somebody reads, it is left for later.
    """
    connection = sqlite3.connect(path, timeout=_PATIENCE_SECONDS, isolation_level=None)
    with closing(connection):
        for mode in ("PASSIVE", "TRUNCATE"):
            connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()


def bytes_on_disk(path: Path) -> int:
    """Of database and write-ahead log."""
    total = 0
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write; it sees each commit as soon as it is made."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """All or nothing; `begin` is the statement that begins it."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself after some errors (disk full, I/O).
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
