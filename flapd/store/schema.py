"""The schema of the history, as the ordered migrations that make it."""

import sqlite3
from pathlib import Path

from flapd.model.errors import FlapdError

# `facets` holds each combination of a flap's classifying columns that ever occurred, some
# hundred at most. Within one facet the flaps lie in order of time, so any filter is a
# merge of a few index ranges and never a scan (flap_query.py).
_HISTORY = """
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (id, revision)
);
CREATE TABLE checkpoint (part TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE facets (
    facet INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    cause TEXT NOT NULL,
    layer TEXT NOT NULL,
    seen TEXT NOT NULL,
    length_class INTEGER NOT NULL,
    UNIQUE (kind, status, cause, layer, seen, length_class)
);
CREATE TABLE flaps (
    id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    key TEXT NOT NULL,
    port TEXT NOT NULL,
    guid TEXT,
    facet INTEGER NOT NULL REFERENCES facets,
    count INTEGER NOT NULL,
    down_unix_ns INTEGER NOT NULL,
    end_unix_ns INTEGER NOT NULL,
    down_ns_max INTEGER,
    body BLOB NOT NULL
);
CREATE INDEX flaps_by_time ON flaps (down_unix_ns, id);
CREATE INDEX flaps_by_facet ON flaps (facet, down_unix_ns, id);
CREATE INDEX flaps_by_port ON flaps (port, facet, down_unix_ns, id);
CREATE INDEX flaps_by_guid ON flaps (guid, facet, down_unix_ns, id);
"""

MIGRATIONS: tuple[str, ...] = (_HISTORY,)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the database to this version's schema, each step in a transaction of its own."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise FlapdError(
            f"{path} has schema version {version} and this flapd knows {len(MIGRATIONS)}: "
            "run the flapd that wrote it or a newer one, or move the file away"
        )
    for number in range(version, len(MIGRATIONS)):
        connection.executescript(
            f"BEGIN IMMEDIATE; {MIGRATIONS[number]} PRAGMA user_version = {number + 1}; COMMIT;"
        )
