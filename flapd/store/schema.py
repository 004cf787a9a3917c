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

# What is told of jobs (shelf.py), and which outages belong to which incident
# (incident_links.py). `gpu_*` are GPU-seconds.
_JOBS = """
CREATE TABLE job_facets (
    facet INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    length_class INTEGER NOT NULL,
    UNIQUE (kind, length_class)
);
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    facet INTEGER NOT NULL REFERENCES job_facets,
    job TEXT NOT NULL,
    begin_unix_ns INTEGER NOT NULL,
    end_unix_ns INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX jobs_by_time ON jobs (begin_unix_ns, id);
CREATE INDEX jobs_by_facet ON jobs (facet, begin_unix_ns, id);
CREATE INDEX jobs_by_job ON jobs (job, facet, begin_unix_ns, id);
CREATE TABLE fault_facets (
    facet INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    length_class INTEGER NOT NULL,
    UNIQUE (kind, length_class)
);
CREATE TABLE faults (
    id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    facet INTEGER NOT NULL REFERENCES fault_facets,
    job TEXT,
    rank INTEGER,
    host TEXT,
    merged_into TEXT,
    at_unix_ns INTEGER NOT NULL,
    begin_unix_ns INTEGER NOT NULL,
    end_unix_ns INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX faults_by_time ON faults (at_unix_ns, id);
CREATE INDEX faults_by_facet ON faults (facet, at_unix_ns, id);
CREATE INDEX faults_by_job ON faults (job, facet, at_unix_ns, id);
CREATE INDEX faults_by_host ON faults (host, facet, at_unix_ns, id);
CREATE INDEX faults_by_rank ON faults (rank, facet, at_unix_ns, id);
CREATE INDEX faults_by_rank_of_job ON faults (job, rank, facet, at_unix_ns, id);
CREATE INDEX faults_by_host_of_job ON faults (job, host, facet, at_unix_ns, id);
CREATE TABLE stall_facets (
    facet INTEGER PRIMARY KEY,
    stall_class TEXT NOT NULL,
    length_class INTEGER NOT NULL,
    UNIQUE (stall_class, length_class)
);
CREATE TABLE stalls (
    id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    facet INTEGER NOT NULL REFERENCES stall_facets,
    job TEXT NOT NULL,
    begin_unix_ns INTEGER NOT NULL,
    end_unix_ns INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX stalls_by_time ON stalls (begin_unix_ns, id);
CREATE INDEX stalls_by_facet ON stalls (facet, begin_unix_ns, id);
CREATE INDEX stalls_by_job ON stalls (job, facet, begin_unix_ns, id);
CREATE TABLE incident_facets (
    facet INTEGER PRIMARY KEY,
    verdict TEXT NOT NULL,
    regime TEXT NOT NULL,
    status TEXT NOT NULL,
    length_class INTEGER NOT NULL,
    UNIQUE (verdict, regime, status, length_class)
);
CREATE TABLE incidents (
    id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    facet INTEGER NOT NULL REFERENCES incident_facets,
    job TEXT,
    begin_unix_ns INTEGER NOT NULL,
    end_unix_ns INTEGER NOT NULL,
    gpu_low REAL,
    gpu_likely REAL,
    gpu_high REAL,
    body BLOB NOT NULL
);
CREATE INDEX incidents_by_time ON incidents (begin_unix_ns, id);
CREATE INDEX incidents_by_facet ON incidents
    (facet, begin_unix_ns, id, end_unix_ns, gpu_low, gpu_likely, gpu_high);
CREATE INDEX incidents_by_job ON incidents (job, facet, begin_unix_ns, id);
CREATE TABLE flap_incidents (
    flap TEXT NOT NULL,
    incident TEXT NOT NULL,
    link_job TEXT,
    link_port TEXT,
    gpu_low REAL,
    gpu_likely REAL,
    gpu_high REAL,
    flap_facet INTEGER,
    flap_down_unix_ns INTEGER,
    incident_facet INTEGER NOT NULL,
    incident_begin_unix_ns INTEGER NOT NULL,
    PRIMARY KEY (flap, incident)
) WITHOUT ROWID;
CREATE INDEX flaps_of_job ON flap_incidents (link_job, flap_facet, flap_down_unix_ns, flap);
CREATE INDEX incidents_of_port ON flap_incidents
    (link_port, incident_facet, incident_begin_unix_ns, incident);
CREATE INDEX flaps_of_incident ON flap_incidents
    (incident, link_port, gpu_low, gpu_likely, gpu_high);
CREATE TABLE superseded (
    incident TEXT NOT NULL,
    by_incident TEXT NOT NULL,
    PRIMARY KEY (incident, by_incident)
) WITHOUT ROWID;
CREATE INDEX superseded_by ON superseded (by_incident);
"""

# Of which node each is, for a history of many (intake.py); of one node nobody asks which, so what
# was there before stays without.
_NODES = """
ALTER TABLE flaps ADD COLUMN node TEXT;
ALTER TABLE jobs ADD COLUMN node TEXT;
ALTER TABLE faults ADD COLUMN node TEXT;
ALTER TABLE stalls ADD COLUMN node TEXT;
ALTER TABLE flap_incidents ADD COLUMN link_node TEXT;
DROP INDEX flaps_by_facet;
CREATE INDEX flaps_by_facet ON flaps
    (facet, down_unix_ns, id, end_unix_ns, node, port, count, down_ns_min, down_ns_max);
CREATE INDEX flaps_by_node ON flaps (node, facet, down_unix_ns, id);
CREATE INDEX jobs_by_node ON jobs (node, facet, begin_unix_ns, id);
CREATE INDEX faults_by_node ON faults (node, facet, at_unix_ns, id);
CREATE INDEX stalls_by_node ON stalls (node, facet, begin_unix_ns, id);
CREATE TABLE incident_nodes (
    node TEXT NOT NULL,
    incident TEXT NOT NULL,
    PRIMARY KEY (node, incident)
) WITHOUT ROWID;
CREATE INDEX nodes_of_incident ON incident_nodes (incident);
CREATE TABLE incident_jobs (
    job TEXT NOT NULL,
    incident TEXT NOT NULL,
    PRIMARY KEY (job, incident)
) WITHOUT ROWID;
CREATE INDEX jobs_of_incident ON incident_jobs (incident);
CREATE TABLE nodes (node TEXT PRIMARY KEY, seen_unix_ns INTEGER NOT NULL, beat BLOB NOT NULL);
"""

# Of which jobs each incident is, and so each of its outages: what one switch did hit several.
_JOBS_OF_INCIDENTS = """
CREATE TABLE links (
    flap TEXT NOT NULL,
    incident TEXT NOT NULL,
    link_port TEXT,
    link_node TEXT,
    gpu_low REAL,
    gpu_likely REAL,
    gpu_high REAL,
    flap_facet INTEGER,
    flap_down_unix_ns INTEGER,
    incident_facet INTEGER NOT NULL,
    incident_begin_unix_ns INTEGER NOT NULL,
    PRIMARY KEY (flap, incident)
) WITHOUT ROWID;
CREATE TABLE links_of_jobs (
    link_job TEXT NOT NULL,
    incident TEXT NOT NULL,
    incident_facet INTEGER NOT NULL,
    incident_begin_unix_ns INTEGER NOT NULL,
    PRIMARY KEY (incident, link_job)
) WITHOUT ROWID;
CREATE TABLE flap_jobs (
    link_job TEXT NOT NULL,
    flap TEXT NOT NULL,
    incident TEXT NOT NULL,
    flap_facet INTEGER,
    flap_down_unix_ns INTEGER,
    PRIMARY KEY (incident, flap, link_job)
) WITHOUT ROWID;
INSERT INTO links SELECT flap, incident, link_port, link_node, gpu_low, gpu_likely, gpu_high,
    flap_facet, flap_down_unix_ns, incident_facet, incident_begin_unix_ns FROM flap_incidents;
INSERT INTO links_of_jobs SELECT job, id, facet, begin_unix_ns FROM incidents WHERE job IS NOT NULL;
INSERT INTO links_of_jobs SELECT incident_jobs.job, id, facet, begin_unix_ns
    FROM incident_jobs JOIN incidents ON incidents.id = incident_jobs.incident
    WHERE incidents.job IS NULL;
INSERT INTO flap_jobs SELECT link_job, flap, incident, flap_facet, flap_down_unix_ns
    FROM links JOIN links_of_jobs USING (incident);
DROP TABLE flap_incidents;
DROP TABLE incident_jobs;
DROP INDEX incidents_by_job;
ALTER TABLE links RENAME TO flap_incidents;
ALTER TABLE links_of_jobs RENAME TO incident_jobs;
CREATE INDEX incidents_of_port ON flap_incidents
    (link_port, incident_facet, incident_begin_unix_ns, incident);
CREATE INDEX flaps_of_incident ON flap_incidents
    (incident, link_port, gpu_low, gpu_likely, gpu_high);
CREATE INDEX incidents_of_job ON incident_jobs
    (link_job, incident_facet, incident_begin_unix_ns, incident);
CREATE INDEX flaps_of_job ON flap_jobs (link_job, flap_facet, flap_down_unix_ns, flap);
CREATE INDEX jobs_of_flap ON flap_jobs (flap);
"""

# When ports were not watched must be known to a hub that starts again (port_changes.py).
_PORT_CHANGES = """
CREATE INDEX port_changes ON journal (
    json_extract(CAST(body AS TEXT), '$.recorded_ns')
    + json_extract(CAST(body AS TEXT), '$.wall_offset_ns')
) WHERE kind = 'port';
"""

MIGRATIONS: tuple[str, ...] = (
    _HISTORY,
    _BLACK_BOXES,
    _JOBS,
    _NODES,
    _JOBS_OF_INCIDENTS,
    _PORT_CHANGES,
)


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
