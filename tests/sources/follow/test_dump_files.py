"""Dumps are read once they are whole, whatever they are; real files, the real thread."""

import os
import pickle
import queue
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flapd.core.job.dump import Dump, dump_of
from flapd.model.observation import DumpsRead
from flapd.sources.follow.dump_files import (
    LARGEST_MESSAGE_BYTES,
    DumpDesk,
    DumpFile,
    Written,
    dumps_read,
)
from flapd.sources.follow.regular import NotRegularError, open_regular
from tests.core.job.test_dump import content, entry

PATIENCE_SECONDS = 20.0
WAITING = content(entry(6), entry(7, "started"))


def dump_file(path: Path, taken: list[Written], *, is_old: bool = False) -> DumpFile:
    def take(written: Written) -> bool:
        taken.append(written)
        return True

    return DumpFile(str(path), partial(open_regular, path, follow=False), take, is_old=is_old)


def turn(dump: DumpFile, times: int = 2) -> None:
    for _ in range(times):
        dump.turn()


def test_a_dump_is_taken_once_it_is_quiet_and_again_when_it_is_written_anew(
    tmp_path: Path,
) -> None:
    path, taken = tmp_path / "nccl_trace_rank_5", list[Written]()
    path.write_bytes(b"")
    dump = dump_file(path, taken)
    turn(dump, 3)
    assert taken == []
    path.write_bytes(b"[1")
    turn(dump, 1)
    path.write_bytes(b"[1]")
    turn(dump, 4)
    path.write_bytes(b"[1,2]")
    turn(dump, 4)

    assert [one.content for one in taken] == [b"[1]", b"[1,2]"]
    assert {(one.rank, one.owner) for one in taken} == {(5, os.getuid())}


def test_what_is_old_is_no_news_until_it_is_written_anew(tmp_path: Path) -> None:
    path, taken = tmp_path / "rank_0", list[Written]()
    path.write_bytes(b"[1]")
    dump = dump_file(path, taken, is_old=True)
    turn(dump, 4)
    assert taken == []
    path.write_bytes(b"[1,2]")
    turn(dump, 4)

    assert [one.content for one in taken] == [b"[1,2]"]


def test_what_the_desk_has_no_room_for_is_taken_later(tmp_path: Path) -> None:
    path = tmp_path / "rank_0"
    path.write_bytes(b"[1]")
    answers = iter([False, True])
    dump = DumpFile(str(path), partial(open_regular, path), lambda _: next(answers), is_old=False)
    turn(dump, 5)

    assert list(answers) == []


def test_a_dump_that_is_too_large_is_told_once_and_not_read(tmp_path: Path) -> None:
    path, taken = tmp_path / "rank_0", list[Written]()
    path.touch()
    os.truncate(path, 33 << 20)
    dump = dump_file(path, taken)
    dump.turn()

    with pytest.raises(OSError, match="larger than 24 MiB"):
        dump.turn()
    turn(dump)
    assert taken == []


def test_a_link_a_pipe_and_what_is_not_there_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(NotRegularError):
            dump_file(tmp_path / name, []).turn()
    dump_file(tmp_path / "nothing", []).turn()


class Desk:
    def __init__(self) -> None:
        self.told: queue.Queue[DumpsRead] = queue.Queue()
        self.failed: queue.Queue[tuple[str, str]] = queue.Queue()

        def note(name: str, reason: str | None) -> None:
            if reason is not None:
                self.failed.put((name, reason))

        self.desk = DumpDesk(
            lambda written: written.job,
            self.told.put,
            note,
        )

    def take(self, rank: int | None, value: bytes, job: str | None = "job") -> None:
        written = Written(f"rank_{rank}", 0, job, rank, value)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.desk.take(written):
            assert time.monotonic() < deadline
            time.sleep(0.001)


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


def test_where_a_job_stands_is_told_by_all_its_dumps_so_far() -> None:
    desk = Desk()
    desk.take(0, encoded(WAITING))
    desk.take(1, encoded(content(entry(6))))

    first, second = (desk.told.get(timeout=PATIENCE_SECONDS) for _ in range(2))

    assert (first.job, [one.missing for one in first.standings]) == ("job", [()])
    assert [one.missing for one in second.standings] == [(1,)]
    assert second.timeouts_seconds == (600.0,)


def test_jobs_are_kept_apart() -> None:
    desk = Desk()
    desk.take(0, encoded(WAITING), "a")
    desk.take(1, encoded(content(entry(6))), "b")

    told = [desk.told.get(timeout=PATIENCE_SECONDS) for _ in range(2)]

    assert [(one.job, len(one.standings)) for one in told] == [("a", 1), ("b", 0)]


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("/tmp/flapd-dump-was-run",)


def test_a_bomb_is_told_and_the_next_dump_is_read() -> None:
    desk = Desk()
    desk.take(0, pickle.dumps(Evil()))
    desk.take(1, encoded(WAITING))

    assert "opcode" in desk.failed.get(timeout=PATIENCE_SECONDS)[1]
    assert desk.told.get(timeout=PATIENCE_SECONDS).standings
    assert not Path("/tmp/flapd-dump-was-run").exists()


def test_a_dump_of_no_rank_is_told() -> None:
    desk = Desk()
    desk.take(None, encoded(WAITING))

    assert "rank" in desk.failed.get(timeout=PATIENCE_SECONDS)[1]


def large(group: int) -> Dump:
    waiting = dict(entry(7, "started"))
    waiting["process_group"] = [f"{group}", "x"]
    value = dict(content(waiting))
    ranks = ", ".join(map(str, range(20_000)))
    value["pg_config"] = {f"{group}": {"name": f"{group}", "desc": "x", "ranks": f"[{ranks}]"}}
    return dump_of(value)


def test_what_is_longer_than_a_datagram_loses_standings() -> None:
    one = dumps_read("job", {0: large(0)})
    dumps = {rank: large(rank) for rank in range(4)}

    assert len(msgspec.msgpack.encode(dumps_read("job", dumps))) <= LARGEST_MESSAGE_BYTES
    assert len(one.standings) <= 1
