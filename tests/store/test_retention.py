"""Retention: what is old or too much goes in order, and the file really shrinks."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from flapd.model.duration import parse_duration
from flapd.store.black_box import Segment, Slot, keep_segments
from flapd.store.database import bytes_on_disk
from flapd.store.flap_query import FlapQuery
from flapd.store.retention import Retention, space
from flapd.store.schema import MIGRATIONS
from flapd.store.settings import HistorySettings
from flapd.store.size import Size
from tests.store.jobs import fault, incident, job, stall
from tests.store.kept import Kept, kept
from tests.store.outages import outage
from tests.store.rings import BOOT, KEY, every, fill

DAY = 86_400
NO_LIMIT = Size(1 << 40)


def settings(keep: str = "10d", boxes: str = "2d", max_size: Size = NO_LIMIT) -> HistorySettings:
    return HistorySettings(parse_duration(keep), parse_duration(boxes), max_size)


def ids(whole: Kept) -> set[str]:
    return {flap.id for flap in whole.reader.flaps(FlapQuery(limit=1000)).items}


def grow(whole: Kept, mebibytes: int, first: int = 0) -> None:
    """Black boxes that cannot be made smaller."""
    for number in range(first, first + 16 * mebibytes):
        slot = Slot(KEY, BOOT, 10**6 + number)
        segment = Segment(slot, "fast", ("a",), os.urandom(64 << 10))

        def store(connection: sqlite3.Connection, segment: Segment = segment) -> None:
            keep_segments(connection, [], [segment])

        whole.history.write(store)


def count(whole: Kept, table: str) -> int:
    return int(whole.rows(f"SELECT count(*) FROM {table}")[0][0])


def test_black_boxes_expire_before_outages_and_both_when_their_time_has_come(
    tmp_path: Path,
) -> None:
    with kept(tmp_path, settings()) as whole:
        fill(whole.ring, every(0.1, 50, 200))
        whole.history.commit([outage("a", down=105, up=107)], {"totals": b"1"})
        whole.look(200)
        assert whole.reader.black_box("a") is not None

        whole.look(2 * DAY)
        assert whole.reader.black_box("a") is not None
        whole.look(2 * DAY + 300)
        assert (whole.reader.black_box("a"), ids(whole)) == (None, {"a"})

        whole.history.commit([outage("b")], {})
        whole.look(10 * DAY + 300)
        assert ids(whole) == {"b"}
        assert [event.id for _seq, event in whole.reader.events_after(0, 10)] == ["b"]
        assert whole.history.checkpoint() == {"totals": b"1"}


def test_what_is_open_never_expires(tmp_path: Path) -> None:
    with kept(tmp_path, settings()) as whole:
        whole.history.commit([outage("a", up=None)], {})
        whole.look(0)
        whole.look(20 * DAY)

        assert ids(whole) == {"a"}
        whole.history.commit([outage("a", 2)], {})
        whole.look(21 * DAY)
        whole.look(40 * DAY)
        assert ids(whole) == set()


def test_an_outage_that_was_revised_is_as_young_as_its_last_revision(tmp_path: Path) -> None:
    with kept(tmp_path, settings()) as whole:
        whole.history.commit([outage("a", 1)], {})
        whole.look(0)
        whole.look(5 * DAY)
        whole.history.commit([outage("a", 2)], {})
        whole.look(11 * DAY)

        assert ids(whole) == {"a"}
        assert [event.revision for _seq, event in whole.reader.events_after(0, 10)] == [2]


def test_sequence_numbers_go_on_after_everything_expired(tmp_path: Path) -> None:
    with kept(tmp_path, settings()) as whole:
        assert (whole.reader.first_seq(), whole.reader.last_seq()) == (0, 0)
        whole.history.commit([outage(name) for name in "abc"], {})
        assert (whole.reader.first_seq(), whole.reader.last_seq()) == (1, 3)
        whole.look(0)
        whole.look(11 * DAY)
        assert (whole.reader.first_seq(), whole.reader.last_seq()) == (0, 3)
        whole.history.commit([outage("d")], {})

        assert (whole.reader.first_seq(), whole.reader.last_seq()) == (4, 4)
        assert [seq for seq, _event in whole.reader.events_after(1, 10)] == [4]


def test_over_the_limit_the_oldest_black_boxes_go_and_the_file_shrinks(tmp_path: Path) -> None:
    limit = Size(16 << 20)
    with kept(tmp_path, settings(max_size=limit)) as whole:
        whole.history.commit([outage(name) for name in "abc"], {})
        grow(whole, 24)
        assert whole.reader.history_bytes() > limit.bytes
        whole.look(0)

        left = whole.rows("SELECT min(slot), max(slot), count(*) FROM segments")[0]
        assert left[1] == 10**6 + 16 * 24 - 1
        assert left[1] - left[0] + 1 == left[2]
        assert 3 << 20 < whole.reader.history_bytes() <= limit.bytes
        assert bytes_on_disk(whole.path) == sum(
            file.stat().st_size
            for file in tmp_path.glob("history.sqlite*")
            if "shm" not in str(file)
        )
        assert ids(whole) == {"a", "b", "c"}


def test_then_revisions_that_were_replaced_go_and_then_the_oldest_outages(tmp_path: Path) -> None:
    limit = Size(16 << 20)
    note = "x" * 4000
    with kept(tmp_path, settings(max_size=limit)) as whole:
        grow(whole, 1)
        for number in range(1000):
            revisions = [outage(f"{number:04}", revision, reason=note) for revision in (1, 2)]
            whole.history.commit(revisions, {})
        whole.look(0)

        assert count(whole, "segments") == 0
        assert count(whole, "flaps") < 1000
        assert count(whole, "journal") == count(whole, "flaps")
        assert whole.reader.history_bytes() <= limit.bytes
        newest = 1000 - count(whole, "flaps")
        assert ids(whole) == {f"{number:04}" for number in range(newest, 1000)}


def test_below_the_limit_nothing_goes(tmp_path: Path) -> None:
    with kept(tmp_path, settings(max_size=Size(16 << 20))) as whole:
        grow(whole, 2)
        whole.history.commit([outage("a", 1), outage("a", 2)], {})
        whole.look(0)

        assert (count(whole, "segments"), count(whole, "journal")) == (32, 2)


def test_no_step_of_the_writer_is_large(tmp_path: Path) -> None:
    """What it removes or moves at once is a few rows and pages, so that no event waits long."""
    with kept(tmp_path, settings(max_size=Size(16 << 20))) as whole:
        grow(whole, 20)
        connection = whole.history._connection
        steps = []
        with closing(sqlite3.connect(whole.path, isolation_level=None)) as reader:
            for step in Retention(settings(max_size=Size(16 << 20))).steps(reader):
                before = connection.total_changes
                whole.history.write(step)
                steps.append(connection.total_changes - before)

        assert len(steps) > 20
        assert max(steps) <= 50


def test_a_reader_in_the_middle_of_a_look_keeps_nothing_from_the_rest(tmp_path: Path) -> None:
    """Who reads holds the write-ahead log; it is written out by a later look."""
    with kept(tmp_path, settings(max_size=Size(16 << 20))) as whole:
        whole.history.commit([outage("a")], {})
        reading = sqlite3.connect(whole.path, isolation_level=None)
        reading.execute("BEGIN")
        reading.execute("SELECT * FROM flaps").fetchall()
        grow(whole, 20)
        whole.look(0)
        assert count(whole, "segments") < 16 * 20
        reading.execute("COMMIT")
        reading.close()
        whole.look(120)

        assert whole.reader.history_bytes() <= 16 << 20


def test_a_file_that_cannot_give_space_back_is_left_as_it_is(tmp_path: Path) -> None:
    """As one of an earlier version, on a disk without room to rewrite it."""
    path = tmp_path / "history.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for migration in MIGRATIONS:
            connection.executescript(migration)
        connection.execute("INSERT INTO checkpoint VALUES ('large', zeroblob(1000000))")
        connection.execute("DELETE FROM checkpoint")

        steps = Retention(settings()).steps(connection)
        next(steps)(connection)

        assert next(steps, None) is None
        assert space(connection).free > 900_000


def test_what_is_told_of_jobs_expires_as_outages_do_unless_it_goes_on(tmp_path: Path) -> None:
    with kept(tmp_path, settings()) as whole:
        over = (job("job-1", until=50), fault(), fault("undated", at=None), stall())
        goes_on = (job("job-2"), stall("stall-2", end=None), incident("i2", end=None))
        whole.history.commit([*over, incident("i1", supersedes=("i0",)), *goes_on], {})
        whole.look(0)
        whole.look(11 * DAY)

        left = {
            table: [name for (name,) in whole.rows(f"SELECT id FROM {table}")]
            for table in ("jobs", "faults", "stalls", "incidents")
        }
        assert left == {
            "jobs": ["job-2"],
            "faults": [],
            "stalls": ["stall-2"],
            "incidents": ["i2"],
        }
        assert (count(whole, "flap_incidents"), count(whole, "superseded")) == (1, 0)


def test_incidents_count_against_the_size(tmp_path: Path) -> None:
    note = ("x" * 4000,)
    with kept(tmp_path, settings(max_size=Size(16 << 20))) as whole:
        for number in range(1000):
            whole.history.commit([incident(f"{number:04}", explanation=note)], {})
        whole.look(0)

        found = [name for (name,) in whole.rows("SELECT id FROM incidents ORDER BY id")]
        assert 0 < len(found) < 1000
        assert found == [f"{number:04}" for number in range(1000 - len(found), 1000)]
        assert count(whole, "flap_incidents") == len(found)
        assert whole.reader.history_bytes() <= 16 << 20
