"""Whatever a job writes, nothing of it is run, little is held, and no good line is lost."""

import os
import pickle
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flapd.model.fault import Fault
from flapd.model.observation import DumpsRead
from flapd.sources.job_reader_link import ReaderHealth
from flapd.sources.settings import DumpsSettings, LogsSettings
from tests.core.job.test_dump import content, entry
from tests.sources.follow.lines import chatter, timeout
from tests.sources.running_reader import RunningReader, job_reader
from tests.sources.test_job_reader import orders

pytestmark = pytest.mark.system

MOST_RESIDENT_MB = 150
GIGABYTE = 1 << 30
LONG_PATIENCE_SECONDS = 60.0


def faults(reader: RunningReader, number: int) -> list[Fault]:
    return [reader.fault(LONG_PATIENCE_SECONDS) for _ in range(number)]


def all_logs(root: Path) -> LogsSettings:
    return LogsSettings(paths=(str(root / "*.log"),), from_start=True)


def test_a_gigabyte_without_an_end_of_line_is_read_in_little_memory(tmp_path: Path) -> None:
    log = tmp_path / "hole.log"
    log.touch()
    os.truncate(log, GIGABYTE)
    with log.open("a") as file:
        file.write("\n" + timeout(7))
    with job_reader(orders(tmp_path, logs=all_logs(tmp_path))) as reader:
        assert faults(reader, 1)[0].seq == 7
        assert reader.most_resident_mb() <= MOST_RESIDENT_MB


def test_garbage_between_good_lines_loses_none_of_them(tmp_path: Path) -> None:
    garbage = [
        b"\0" * 100_000,
        b"\xff\xfe\xc3\x28" * 50_000,
        b"x" * 300_000,
        b"\x1b]0;title\x07\x1b[31m" * 10_000,
        b"\r" * 10_000,
        os.urandom(200_000).replace(b"\n", b""),
    ]
    lines = b"".join(
        piece + b"\n" + timeout(number).encode() for number, piece in enumerate(garbage)
    )
    (tmp_path / "garbage.log").write_bytes(lines)
    with job_reader(orders(tmp_path, logs=all_logs(tmp_path))) as reader:
        found = faults(reader, len(garbage))
        assert reader.most_resident_mb() <= MOST_RESIDENT_MB

    assert sorted(fault.seq or 0 for fault in found) == list(range(len(garbage)))


def test_what_is_told_of_a_line_drives_no_terminal(tmp_path: Path) -> None:
    hostile = timeout(7).replace("ran for", "\x1b[2J\x07\x9b31mran\x00 for")
    (tmp_path / "escape.log").write_text(hostile)
    with job_reader(orders(tmp_path, logs=all_logs(tmp_path))) as reader:
        (fault,) = faults(reader, 1)

    assert fault.text.isprintable()


def test_very_many_different_lines_are_forgotten(tmp_path: Path) -> None:
    """What lines look like is remembered to be quick."""
    letters = "ghijklmnopqrstuvwxyz"
    with (tmp_path / "varied.log").open("w") as file:
        for number in range(50_000):
            word = "".join(letters[number // 20**place % 20] for place in range(5))
            file.write(f"{word * 40}\n")
        file.write(timeout(7))
    with job_reader(orders(tmp_path, logs=all_logs(tmp_path))) as reader:
        assert faults(reader, 1)[0].seq == 7
        assert reader.most_resident_mb() <= MOST_RESIDENT_MB


def test_pipes_and_loops_hold_up_no_other_log(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.log")
    (tmp_path / "b.log").symlink_to("b.log")
    (tmp_path / "c.log").mkdir()
    (tmp_path / "d.log").symlink_to("/dev/zero")
    (tmp_path / "e.log").write_text(timeout(7))
    with job_reader(orders(tmp_path, logs=all_logs(tmp_path))) as reader:
        assert faults(reader, 1)[0].seq == 7
        health = reader.until(
            lambda told: told if isinstance(told, ReaderHealth) and len(told.failures) > 3 else None
        )

    assert {Path(name).name for name in health.failures} == {"a.log", "b.log", "c.log", "d.log"}


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("/tmp/flapd-reader-ran-this",)


def test_dumps_run_nothing_and_take_little_memory(tmp_path: Path) -> None:
    (tmp_path / "rank_1").write_bytes(pickle.dumps(Evil()))
    (tmp_path / "rank_2").write_bytes(b"\x80\x02" + b"}" * (20 << 20) + b".")
    (tmp_path / "rank_3").write_bytes(b"[" + b"{}," * (7 << 20) + b"{}]")
    (tmp_path / "rank_4").write_bytes(b"[" * (20 << 20))
    (tmp_path / "rank_5").write_bytes(msgspec.json.encode(content(entry(7, "started"))))
    dumps = DumpsSettings(paths=(str(tmp_path / "rank_*"),))
    logs = LogsSettings(from_start=True)
    with job_reader(orders(tmp_path, logs=logs, dumps=dumps)) as reader:
        read = reader.until(
            lambda told: told if isinstance(told, DumpsRead) else None, LONG_PATIENCE_SECONDS
        )
        health = reader.until(
            lambda told: (
                told if isinstance(told, ReaderHealth) and len(told.failures) > 3 else None
            ),
            LONG_PATIENCE_SECONDS,
        )
        assert reader.most_resident_mb() <= MOST_RESIDENT_MB

    assert [one.seq for one in read.standings] == [7]
    assert all("dump" in reason for reason in health.failures.values())
    assert not Path("/tmp/flapd-reader-ran-this").exists()


def test_a_log_that_is_rotated_a_hundred_times_while_it_grows_loses_no_line(
    tmp_path: Path,
) -> None:
    log = tmp_path / "train.log"
    logs = LogsSettings(paths=(str(log),))
    rotations, lines = 100, 20

    def write() -> None:
        """As logrotate does it: the old names move on by one."""
        for rotation in range(rotations):
            with log.open("a") as file:
                for line in range(lines):
                    file.write(chatter(line) + timeout(rotation * lines + line))
            for number in range(rotation, 0, -1):
                (tmp_path / f"train.log.{number}").rename(tmp_path / f"train.log.{number + 1}")
            log.rename(tmp_path / "train.log.1")

    log.touch()
    with job_reader(orders(tmp_path, logs=logs)) as reader:
        reader.until(lambda told: told if isinstance(told, ReaderHealth) and told.files else None)
        writer = threading.Thread(target=write)
        writer.start()
        found = {fault.seq for fault in faults(reader, rotations * lines)}
        writer.join()

    assert found == set(range(rotations * lines))
