"""A copy of the history for a capture, made beside an agent that goes on writing it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from flapd.store.database import connect_reader, told, transaction

_NOT_OURS = "sqlite_%"
_OF_BLACK_BOXES = {"black_boxes", "wanted", "segments", "column_sets"}


def copy_history(path: Path, into: Path) -> None:
    """All of it, as it was at one moment; HistoryError where that cannot be had."""
    with (
        told(path),
        closing(connect_reader(path)) as source,
        closing(sqlite3.connect(into)) as copy,
    ):
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, without -wal and -shm


def copy_history_without_black_boxes(path: Path, into: Path) -> None:
    """Likewise, but the tables of black boxes are empty."""
    with told(path), closing(_writer(into)) as copy:
        copy.execute("ATTACH ? AS source", (f"{path.absolute().as_uri()}?mode=ro",))
        with transaction(copy, "BEGIN"):
            _copy(copy)


def _writer(into: Path) -> sqlite3.Connection:
    return sqlite3.connect(into.absolute().as_uri(), uri=True, isolation_level=None)


def _copy(copy: sqlite3.Connection) -> None:
    """Indexes last, since they are made faster from what is there."""
    made = copy.execute(
        "SELECT type, name, sql FROM source.sqlite_master "
        "WHERE sql IS NOT NULL AND name NOT LIKE ? ORDER BY type = 'index'",
        (_NOT_OURS,),
    ).fetchall()
    for kind, name, statement in made:
        copy.execute(statement)
        if kind == "table" and name not in _OF_BLACK_BOXES:
            copy.execute(f'INSERT INTO main."{name}" SELECT * FROM source."{name}"')  # noqa: S608
    (version,) = copy.execute("PRAGMA source.user_version").fetchone()
    copy.execute(f"PRAGMA main.user_version = {int(version)}")
