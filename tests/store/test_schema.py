"""The schema: a history of each earlier version is brought up to date, or left as it was."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from flapd.model.errors import FlapdError
from flapd.model.event import Outage
from flapd.store.body import encoded_event
from flapd.store.flap_query import FlapQuery
from flapd.store.history import History, open_history
from flapd.store.history_reader import HistoryReader
from flapd.store.job_queries import IncidentQuery
from flapd.store.schema import MIGRATIONS, migrate
from tests.store.jobs import fault, incident, job, stall
from tests.store.outages import outage, unix

VERSION_1 = """
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, revision INTEGER NOT NULL,
    kind TEXT NOT NULL, body BLOB NOT NULL, UNIQUE (id, revision)
);
CREATE TABLE checkpoint (part TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE facets (
    facet INTEGER PRIMARY KEY, kind TEXT NOT NULL, status TEXT NOT NULL, cause TEXT NOT NULL,
    layer TEXT NOT NULL, seen TEXT NOT NULL, length_class INTEGER NOT NULL,
    UNIQUE (kind, status, cause, layer, seen, length_class)
);
CREATE TABLE flaps (
    id TEXT PRIMARY KEY, revision INTEGER NOT NULL, seq INTEGER NOT NULL, key TEXT NOT NULL,
    port TEXT NOT NULL, guid TEXT, facet INTEGER NOT NULL REFERENCES facets,
    count INTEGER NOT NULL, down_unix_ns INTEGER NOT NULL, end_unix_ns INTEGER NOT NULL,
    down_ns_max INTEGER, body BLOB NOT NULL
);
CREATE INDEX flaps_by_time ON flaps (down_unix_ns, id);
CREATE INDEX flaps_by_facet ON flaps (facet, down_unix_ns, id);
CREATE INDEX flaps_by_port ON flaps (port, facet, down_unix_ns, id);
CREATE INDEX flaps_by_guid ON flaps (guid, facet, down_unix_ns, id);
INSERT INTO journal VALUES (7, 'a', 1, 'flap', CAST(:body AS BLOB));
INSERT INTO facets VALUES (1, 'flap', 'closed', 'link', 'physical', 'observed', 16);
INSERT INTO flaps VALUES ('a', 1, 7, '0x1/1', 'mlx5_0/1', '0x1', 1, 1, :down, :up, :max,
    CAST(:body AS BLOB));
INSERT INTO checkpoint VALUES ('ledger', x'01');
PRAGMA user_version = 1;
"""
FLAP = outage("a")


def first_version(path: Path) -> None:
    """As the first version left it; its JSON did not have the fields that came later."""
    old = msgspec.to_builtins(FLAP)
    for later in ("member", "after", "reason", "grace"):
        del old[later]
    values = {
        "body": msgspec.json.encode(old).decode(),
        "down": FLAP.down.earliest_unix_ns,
        "up": unix(12),
        "max": FLAP.down_ns_max,
    }
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for statement in VERSION_1.split(";\n"):
            connection.execute(statement, values if ":" in statement else {})


def version_of(path: Path) -> tuple[int, int]:
    """Of the schema, and how the file gives space back."""
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (auto_vacuum,) = connection.execute("PRAGMA auto_vacuum").fetchone()
    return version, auto_vacuum


def test_a_history_of_the_first_version_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    first_version(path)
    assert version_of(path) == (1, 0)

    history, aside = open_history(path, 10**9)

    with closing(history), closing(HistoryReader(path)) as reader:
        assert aside is None
        assert history.checkpoint() == {"ledger": b"\x01"}
        assert reader.flaps(FlapQuery(cause="link")).items == [FLAP]
        assert reader.summary(unix(0), unix(99)).total.down_ns_min == FLAP.down_ns_min
        history.commit([outage("b")], {})
        assert [seq for seq, _event in reader.events_after(0, 10)] == [7, 8]
    assert version_of(path) == (len(MIGRATIONS), 2)


def test_a_history_without_jobs_takes_them_from_then_on(tmp_path: Path) -> None:
    """As version 2 left it: incidents of its outages are linked to them."""
    path = tmp_path / "history.sqlite"
    first_version(path)
    with closing(sqlite3.connect(path)) as connection:
        migrate(connection, path, MIGRATIONS[:2])

    with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
        history.commit([incident(), job(), fault(), stall()], {})

        assert reader.flaps(FlapQuery(job="4711")).items == [FLAP]
        assert reader.incidents(IncidentQuery(port="mlx5_0/1")).items == [incident()]
        told = [event for _seq, event in reader.events_after(7, 10)]
        assert told == [incident(), job(), fault(), stall()]


def test_the_jobs_of_incidents_that_were_kept_before_are_still_found(tmp_path: Path) -> None:
    """As version 4 left them: what hit several jobs was kept apart, and not with its outages."""
    path = tmp_path / "history.sqlite"
    first_version(path)
    of_one, of_both = incident("one"), incident("both", job=None, jobs=("4711", "4712"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, path, MIGRATIONS[:4])
        connection.execute("INSERT INTO incident_facets VALUES (1, 'caused', 'absorbed', '', 9)")
        for told in (of_one, of_both):
            row = (told.id, told.job, unix(10), unix(15), encoded_event(told))
            connection.execute(
                "INSERT INTO incidents (id, revision, seq, facet, job, begin_unix_ns, end_unix_ns,"
                " body) VALUES (?, 0, 0, 1, ?, ?, ?, ?)",
                row,
            )
            connection.execute(
                "INSERT INTO flap_incidents (flap, incident, link_job, link_port, flap_facet,"
                " flap_down_unix_ns, incident_facet, incident_begin_unix_ns)"
                " SELECT id, ?, ?, port, facet, down_unix_ns, 1, ? FROM flaps",
                (told.id, told.job, unix(10)),
            )
        connection.executemany(
            "INSERT INTO incident_jobs VALUES (?, 'both')", [("4711",), ("4712",)]
        )

    with closing(History(path)), closing(HistoryReader(path)) as reader:
        found = {
            job: [one.id for one in reader.incidents(IncidentQuery(job=job)).items]
            for job in ("4711", "4712", "4713")
        }
        assert found == {"4711": ["one", "both"], "4712": ["both"], "4713": []}
        assert reader.flaps(FlapQuery(job="4712")).items == [FLAP]
        assert reader.losses(["a"])["a"].incidents == ("both", "one")
        assert len(reader.incidents(IncidentQuery(port="mlx5_0/1")).items) == 2


def test_a_new_history_gives_space_back_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    History(path).close()

    assert version_of(path) == (len(MIGRATIONS), 2)


def test_opening_a_history_that_is_up_to_date_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with closing(History(path)) as history:
        history.commit([FLAP], {})
    content = path.read_bytes()
    History(path).close()

    assert path.read_bytes() == content


def test_a_migration_that_is_interrupted_leaves_the_version_before(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    first_version(path)
    broken = (MIGRATIONS[0], MIGRATIONS[1] + "INSERT INTO nowhere VALUES (1);")

    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.OperationalError):
        migrate(connection, path, broken)

    assert version_of(path) == (1, 0)
    with closing(History(path)), closing(HistoryReader(path)) as reader:
        assert reader.flap("a") == FLAP


@pytest.mark.parametrize("version", [len(MIGRATIONS) + 1, 99])
def test_a_newer_schema_is_refused_with_what_to_do_and_stays_as_it_is(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "history.sqlite"
    with closing(History(path)) as history:
        history.commit([FLAP], {})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")

    with pytest.raises(FlapdError) as refused:
        open_history(path)

    assert str(refused.value) == (
        f"{path} has schema version {version} and this flapd knows {len(MIGRATIONS)}: "
        "run the flapd that wrote it or a newer one, or move the file away"
    )
    assert version_of(path) == (version, 2)
    assert [file.name for file in tmp_path.iterdir()] == ["history.sqlite"]


def test_a_flap_of_the_first_version_is_read_with_the_fields_it_lacked() -> None:
    old = msgspec.to_builtins(FLAP)
    del old["grace"], old["member"]

    assert msgspec.json.decode(msgspec.json.encode(old), type=Outage) == FLAP
