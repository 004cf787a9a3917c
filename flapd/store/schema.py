"""The schema of the history, as the ordered migrations that make it."""

import sqlite3
from collections.abc import Sequence
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

# Samples around outages (black_box.py), what they cost (retention.py), and all that a summary
# needs of a flap in the index that finds it (summary.py). Numbers of segments are never used
# twice (AUTOINCREMENT): what expires is told by them.
_BLACK_BOXES = """
ALTER TABLE flaps ADD COLUMN down_ns_min INTEGER;
UPDATE flaps SET down_ns_min = json_extract(CAST(body AS TEXT), '$.down_ns_min');
DROP INDEX flaps_by_facet;
CREATE INDEX flaps_by_facet ON flaps
    (facet, down_unix_ns, id, end_unix_ns, port, count, down_ns_min, down_ns_max);
CREATE TABLE black_boxes (
    flap TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    key TEXT NOT NULL,
    boot TEXT NOT NULL,
    wall_offset_ns INTEGER NOT NULL,
    PRIMARY KEY (flap, first)
) WITHOUT ROWID;
CREATE TABLE wanted (
    key TEXT NOT NULL,
    boot TEXT NOT NULL,
    slot INTEGER NOT NULL,
    PRIMARY KEY (key, boot, slot)
) WITHOUT ROWID;
CREATE TABLE column_sets (columns INTEGER PRIMARY KEY, names BLOB NOT NULL UNIQUE);
CREATE TABLE segments (
    segment INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL,
    boot TEXT NOT NULL,
    slot INTEGER NOT NULL,
    tier TEXT NOT NULL,
    columns INTEGER NOT NULL REFERENCES column_sets,
    packed BLOB NOT NULL,
    UNIQUE (key, boot, slot, tier)
);
CREATE TABLE ages (
    lived_ns INTEGER PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    last_segment INTEGER NOT NULL
);
CREATE TABLE lived (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    lived_ns INTEGER NOT NULL,
    boot TEXT NOT NULL,
    monotonic_ns INTEGER NOT NULL,
    unix_ns INTEGER NOT NULL
);
"""

MIGRATIONS: tuple[str, ...] = (_HISTORY, _BLACK_BOXES)


def migrate(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[str] = MIGRATIONS
) -> None:
    """Bring the database to this version's schema, each step in a transaction of its own."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(migrations):
        raise FlapdError(
            f"{path} has schema version {version} and this flapd knows {len(migrations)}: "
            "run the flapd that wrote it or a newer one, or move the file away"
        )
    for number in range(version, len(migrations)):
        connection.executescript(
            f"BEGIN IMMEDIATE; {migrations[number]} PRAGMA user_version = {number + 1}; COMMIT;"
        )
