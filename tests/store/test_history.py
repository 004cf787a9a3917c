"""The history: events and checkpoint together, whatever happens, and one truth per id."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flapd.model.errors import FlapdError
from flapd.model.event import Outage
from flapd.store.flap_query import FlapQuery
from flapd.store.history import History, HistoryCorruptError, HistoryError, open_history
from flapd.store.history_reader import HistoryReader
from flapd.store.schema import MIGRATIONS
from tests.store.outages import outage, outages

REPOSITORY = Path(__file__).parents[2]


@st.composite
def told_events(draw: st.DrawFn) -> list[Outage]:
    """Revisions of a few ids, each with one content, repeated and out of order."""
    names = [(name, revision) for name in "abc" for revision in range(1, 5)]
    contents = [draw(outages(name, revision)) for name, revision in names]
    return draw(st.lists(st.sampled_from(contents), max_size=20))


@settings(deadline=None)
@given(told_events(), st.integers(1, 5))
def test_the_highest_revisions_are_shown_whatever_the_order(
    events: list[Outage], per_commit: int
) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "history.db"
        with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
            for start in range(0, len(events), per_commit):
                history.commit(events[start : start + per_commit], {})

            highest: dict[str, Outage] = {}
            for event in sorted(events, key=lambda event: event.revision):
                highest[event.id] = event
            shown = reader.flaps(FlapQuery()).items
            assert {flap.id: flap for flap in shown} == highest
            assert len(shown) == len(highest)
            journal = [event for _seq, event in reader.events_after(0, 1000)]
            assert journal == list(dict.fromkeys(events))


def test_events_and_checkpoint_are_there_after_closing(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with closing(History(path)) as history:
        history.commit([outage("a")], {"ledger": b"1", "totals": b"x"})
        history.commit([outage("b")], {"ledger": b"2"})

    with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
        assert history.checkpoint() == {"ledger": b"2", "totals": b"x"}
        assert reader.flap("a") == outage("a")
        assert reader.flap("c") is None


def test_events_are_resumed_behind_a_sequence_number(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
        assert reader.last_seq() == 0
        history.commit([outage(name) for name in "abcd"], {})
        first = reader.events_after(0, 2)
        rest = reader.events_after(first[-1][0], 10)

        assert [event.id for _seq, event in first + rest] == ["a", "b", "c", "d"]
        assert reader.last_seq() == rest[-1][0]


def test_a_reader_sees_each_commit_at_once_and_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
        for number in range(1, 20):
            history.commit([outage(str(number))], {})
            assert len(reader.events_after(0, 100)) == number
        with pytest.raises(HistoryError, match="readonly"), reader._connection() as connection:
            connection.execute("DELETE FROM flaps")


def test_each_thread_may_read(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    found: list[Outage | None] = []
    with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
        history.commit([outage("a")], {})
        threads = [
            threading.Thread(target=lambda: found.append(reader.flap("a"))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert found == [outage("a")] * 4


def test_flaps_are_counted_by_port_since_a_time(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    events = [
        outage("a", down=10, count=3),
        outage("b", down=20, up=21, count=2),
        outage("c", down=30, up=31),
        outage("d", down=30, up=None, key="0x2/1"),
    ]
    with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
        history.commit(events, {})

        assert reader.flaps_per_port(events[1].down.earliest_unix_ns) == {"0x1/1": 2, "0x2/1": 1}


def test_a_failed_commit_leaves_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
        pages = history._connection.execute("PRAGMA page_count").fetchone()[0]
        history._connection.execute(f"PRAGMA max_page_count = {pages}")  # as a full disk does
        events = [outage(str(number)) for number in range(500)]

        with pytest.raises(HistoryError, match="full"):
            history.commit(events, {"ledger": b"1"})
        assert (reader.last_seq(), history.checkpoint()) == (0, {})

        history._connection.execute("PRAGMA max_page_count = 1000000")
        history.commit(events, {"ledger": b"1"})
        assert len(reader.events_after(0, 1000)) == 500
        assert history.checkpoint() == {"ledger": b"1"}


def test_group_may_read_and_others_may_not(tmp_path: Path) -> None:
    path = tmp_path / "made" / "history.db"
    with closing(History(path)) as history:
        history.commit([outage()], {})
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}

    assert modes == dict.fromkeys(["history.db", "history.db-wal", "history.db-shm"], 0o640)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o750


def test_a_newer_schema_is_refused_with_file_and_versions(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")

    with pytest.raises(FlapdError, match=rf"history\.db .*99.* {len(MIGRATIONS)}:") as refused:
        open_history(path)

    assert not isinstance(refused.value, HistoryCorruptError)


def test_a_place_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(HistoryError, match=r"file/history\.db"):
        History(tmp_path / "file" / "history.db")


def test_a_missing_history_is_an_error_to_its_reader(tmp_path: Path) -> None:
    with closing(HistoryReader(tmp_path / "history.db")) as reader, pytest.raises(HistoryError):
        reader.last_seq()


def test_a_sound_history_is_opened_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with closing(History(path)) as history:
        history.commit([outage()], {"ledger": b"1"})

    history, aside = open_history(path)

    with closing(history):
        assert (history.checkpoint(), aside) == ({"ledger": b"1"}, None)


def fill(path: Path) -> None:
    with closing(History(path)) as history:
        history.commit([outage(str(number)) for number in range(300)], {"ledger": b"1"})


@pytest.mark.parametrize("offset", [0, 100, 4096, 12_288])
def test_a_damaged_history_is_set_aside_and_a_new_one_begun(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "history.db"
    for number in (1, 2):
        fill(path)
        content = bytearray(path.read_bytes())
        content[offset : offset + 2000] = b"\xa5" * 2000
        path.write_bytes(content)

        history, aside = open_history(path)

        with closing(history):
            history.commit([outage()], {})
            assert history.checkpoint() == {}
        assert aside == tmp_path / f"history.db.corrupt-{number}"
        assert aside.read_bytes() == content
        path.unlink()


def test_damage_found_while_writing_says_that_trying_again_is_of_no_use(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'journal'"
        ).fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xa5" * 4096
    path.write_bytes(content)

    with closing(History(path)) as history, pytest.raises(HistoryCorruptError, match="damaged"):
        history.commit([outage("new")], {})


def test_a_history_marked_as_damaged_is_set_aside_by_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    fill(path)
    with closing(History(path)) as history:
        history.mark_damaged()

    history, aside = open_history(path)
    history.close()
    again, nothing = open_history(path)
    again.close()

    assert (aside, nothing) == (tmp_path / "history.db.corrupt-1", None)


CHILD = """
    import sys
    from pathlib import Path
    from flapd.store.history import History
    from tests.store.outages import outage

    history = History(Path(sys.argv[1]))
    number = int(history.checkpoint().get("number", b"0"))
    while True:
        number += 1
        history.commit([outage(str(number))], {"number": str(number).encode()})
        print(number, flush=True)
"""


def commit_until_killed(path: Path, commits: int) -> int:
    """The last commit that was told to be done."""
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(path)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        for _ in range(commits):
            told = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        return max([told, *(int(line) for line in child.stdout if line.endswith("\n"))])


def test_after_a_kill_events_and_checkpoint_agree_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    for commits in (1, 7, 30):
        told = commit_until_killed(path, commits)

        with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
            number = int(history.checkpoint()["number"])
            events = reader.events_after(0, 100_000)
        assert number in (told, told + 1)
        assert [event.id for _seq, event in events] == [str(n + 1) for n in range(number)]
