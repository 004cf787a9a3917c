"""The history: one journal of events, what is projected from it, and the checkpoint.

Events and the checkpoint that knows of them are committed in one transaction, so that
being killed at any moment loses nothing and counts nothing twice.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from flapd.model.event import Event, Outage
from flapd.store.black_box import want_black_box
from flapd.store.body import encoded_event, kind_of
from flapd.store.database import (
    HistoryCorruptError,
    HistoryError,
    connect_writer,
    make_shrinkable,
    told,
    transaction,
)
from flapd.store.files import create_file, make_directory
from flapd.store.projection import project
from flapd.store.schema import migrate

__all__ = ["History", "HistoryCorruptError", "HistoryError", "open_history"]

_CHEAP_TO_CHECK_BYTES = 4 << 20

_JOURNAL = """
INSERT INTO journal (id, revision, kind, body) VALUES (?, ?, ?, ?)
ON CONFLICT (id, revision) DO NOTHING
"""
_CHECKPOINT = """
INSERT INTO checkpoint (part, body) VALUES (?, ?)
ON CONFLICT (part) DO UPDATE SET body = excluded.body
"""


class History:
    """The only writer of a history; used by one thread at a time.

    HistoryError where the file cannot be made or opened, HistoryCorruptError where it is
    damaged, FlapdError where a newer flapd wrote it.
    """

    def __init__(self, path: Path, black_box_ns: int | None = None) -> None:
        self.black_box_ns = black_box_ns
        """Samples are kept so long before and after an outage; None where there are none."""
        self._path = path
        _make(path)
        with told(path):
            self._connection = connect_writer(path)
            try:
                migrate(self._connection, path)
                make_shrinkable(self._connection)
            except BaseException:
                self._connection.close()
                raise

    def commit(self, events: Sequence[Event], checkpoint: Mapping[str, bytes]) -> None:
        """All of it on the disk, or HistoryError and nothing of it: then try the same again.

        A revision that is not above the one there is changes nothing that is shown.
        """
        with told(self._path), transaction(self._connection, "BEGIN IMMEDIATE"):
            for event in events:
                self._record(event)
            self._connection.executemany(_CHECKPOINT, checkpoint.items())

    def write(self, step: Callable[[sqlite3.Connection], None]) -> None:
        """What upkeep writes, all of it or HistoryError and nothing of it."""
        with told(self._path), transaction(self._connection, "BEGIN IMMEDIATE"):
            step(self._connection)

    def _record(self, event: Event) -> None:
        body = encoded_event(event)
        row = (event.id, event.revision, kind_of(event), body)
        entry = self._connection.execute(_JOURNAL, row)
        if not entry.rowcount or entry.lastrowid is None:
            return
        is_newest = project(self._connection, event, entry.lastrowid, body)
        if is_newest and isinstance(event, Outage) and self.black_box_ns is not None:
            want_black_box(self._connection, event, self.black_box_ns)

    def checkpoint(self) -> dict[str, bytes]:
        """What the last commit of each part left."""
        with told(self._path):
            return dict(self._connection.execute("SELECT part, body FROM checkpoint"))

    def mark_damaged(self) -> None:
        """Has the next start set this file aside."""
        with suppress(OSError):
            os.close(create_file(_damage_mark(self._path)))

    def check(self) -> None:
        """Look at every page: HistoryCorruptError where one is damaged."""
        with told(self._path):
            (verdict,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)

    def close(self) -> None:
        self._connection.close()


def _make(path: Path) -> None:
    try:
        make_directory(path.parent)
        os.close(create_file(path))
    except FileExistsError:
        pass
    except OSError as error:
        raise HistoryError(f"history {path} cannot be made: {error.strerror}") from error


def open_history(path: Path, black_box_ns: int | None = None) -> tuple[History, Path | None]:
    """The history, a new one where the file is damaged; and where the damaged one now lies.

    Damage outside what every start reads is looked for only where the file is small: in a
    large one that takes seconds, and it is noticed by the first commit that meets it.
    """
    if _damage_mark(path).exists():
        return _start_anew(path, black_box_ns)
    try:
        history = History(path, black_box_ns)
    except HistoryCorruptError:
        return _start_anew(path, black_box_ns)
    try:
        history.checkpoint()
        if path.stat().st_size <= _CHEAP_TO_CHECK_BYTES:
            history.check()
    except HistoryCorruptError:
        history.close()
        return _start_anew(path, black_box_ns)
    return history, None


def _damage_mark(path: Path) -> Path:
    return path.with_name(f"{path.name}.damaged")


def _start_anew(path: Path, black_box_ns: int | None) -> tuple[History, Path]:
    aside = next(name for name in _aside_names(path) if not name.exists())
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    _damage_mark(path).unlink(missing_ok=True)
    return History(path, black_box_ns), aside


def _aside_names(path: Path) -> Iterator[Path]:
    return (path.with_name(f"{path.name}.corrupt-{number}") for number in count(1))
