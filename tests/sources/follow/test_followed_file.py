"""A log is followed by its name, whatever happens to the file behind it; real files."""

import os
import shutil
from pathlib import Path

import pytest

from flapd.model.fault import Fault
from flapd.sources.follow.followed_file import POSITION_EVERY_NS
from flapd.sources.follow.position import decode, encode
from flapd.sources.follow.regular import NotRegularError
from tests.sources.follow.lines import timeout
from tests.sources.follow.surroundings import Reader


def append(path: Path, *texts: str) -> None:
    with path.open("a") as file:
        file.writelines(texts)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    append(path, timeout(1))
    return path


def test_what_was_there_before_is_left_out_and_what_comes_is_told(log: Path) -> None:
    reader = Reader()
    file = reader.follow(log)
    file.turn()
    append(log, timeout(2))
    file.turn()

    assert reader.take() == [2]


def test_a_file_that_came_meanwhile_is_read_from_its_start(log: Path) -> None:
    reader = Reader()
    reader.follow(log, is_new=True).turn()

    assert reader.take() == [1]


def test_a_line_is_told_once_it_is_whole(log: Path) -> None:
    reader = Reader()
    file = reader.follow(log)
    file.turn()
    append(log, timeout(2)[:50])
    file.turn()
    assert reader.take() == []

    append(log, timeout(2)[50:])
    file.turn()

    assert reader.take() == [2]


def test_what_arrived_while_it_was_followed_has_its_time_and_what_was_there_has_not(
    log: Path,
) -> None:
    reader = Reader()
    file = reader.follow(log)
    file.turn()
    append(log, timeout(2))
    file.turn()
    live = reader.findings[0]
    old = Reader()
    again = old.follow(log)
    again._backlog_bytes = 1 << 20
    again.turn()

    assert isinstance(live, Fault)
    assert live.arrived_ns is not None
    assert [found.arrived_ns for found in old.findings if isinstance(found, Fault)] == [None, None]


def test_after_a_rename_both_the_old_file_and_the_new_one_are_read(log: Path) -> None:
    reader = Reader()
    file = reader.follow(log)
    file.turn()
    append(log, timeout(2))
    old = log.rename(log.with_name("train.log.1"))
    append(old, timeout(3))
    append(log, timeout(4))
    file.turn()
    append(old, timeout(5))  # its writer has not heard yet
    append(log, timeout(6))
    file.turn()
    file.turn()

    assert sorted(reader.take()) == [2, 3, 4, 5, 6]


def test_files_that_had_the_name_between_two_looks_are_read(log: Path) -> None:
    reader = Reader()
    file = reader.follow(log)
    file.turn()
    for number in range(2, 6):
        append(log, timeout(number))
        log.rename(log.with_name(f"train.log-{number}"))
    append(log, timeout(6))
    file.turn()
    file.turn()

    assert sorted(reader.take()) == [2, 3, 4, 5, 6]


def test_logs_that_begin_alike_are_not_taken_for_one_another(log: Path) -> None:
    banner = "*" * 3000 + "\n"
    log.write_text(banner)
    reader = Reader()
    file = reader.follow(log)
    file.turn()
    for number in (2, 3):
        log.rename(log.with_name(f"train.log.{number}"))
        append(log, timeout(number), banner)
    file.turn()
    file.turn()

    assert sorted(reader.take()) == [2, 3]


def test_what_was_copied_and_truncated_is_read_on_in_the_copy(log: Path) -> None:
    reader = Reader()
    file = reader.follow(log)
    file.turn()
    append(log, timeout(2))
    file.turn()
    append(log, timeout(3))
    shutil.copyfile(log, log.with_name("train.log.1"))
    os.truncate(log, 0)
    append(log, timeout(4))
    file.turn()
    file.turn()

    assert sorted(reader.take()) == [2, 3, 4]


def test_a_file_that_was_emptied_and_has_grown_past_where_we_were_is_read_from_its_start(
    log: Path,
) -> None:
    reader = Reader()
    file = reader.follow(log)
    file.turn()
    log.write_text(timeout(2) + timeout(3) + timeout(4))
    file.turn()

    assert reader.take() == [2, 3, 4]


def test_the_same_line_at_the_same_place_of_an_emptied_file_is_another_fault(log: Path) -> None:
    """Lines without a time are told apart by their place alone."""
    line = "node1:7:8 [0] transport/net_ib.cc:100 NCCL WARN NET/IB : Got async event : port error\n"
    reader = Reader()
    file = reader.follow(log)
    file.turn()
    for _ in range(2):
        log.write_text(line)
        file.turn()
        log.write_text("")
        file.turn()

    ids = [found.id for found in reader.findings if isinstance(found, Fault)]
    assert len(ids) == len(set(ids)) == 2


def test_a_restart_goes_on_where_reading_ended(log: Path) -> None:
    first = Reader()
    file = first.follow(log)
    file.turn()
    append(log, timeout(2), timeout(3)[:70])
    file._position_at_ns = -POSITION_EVERY_NS
    file.turn()
    kept = decode(encode(first.positions))
    append(log, timeout(3)[70:], timeout(4))

    second = Reader(kept)
    second.follow(log).turn()

    assert (first.take(), second.take()) == ([2], [3, 4])


def test_what_was_rotated_while_nobody_ran_is_read_to_its_end(log: Path) -> None:
    first = Reader()
    file = first.follow(log)
    file.turn()
    append(log, timeout(2))
    log.rename(log.with_name("train.log.2"))
    append(log, timeout(3))
    log.rename(log.with_name("train.log.1"))
    append(log, timeout(4))

    second = Reader(first.positions)
    again = second.follow(log)
    again.turn()
    again.turn()

    assert sorted(second.take()) == [2, 3, 4]


def test_what_was_truncated_while_nobody_ran_is_read_from_its_start(log: Path) -> None:
    first = Reader()
    first.follow(log).turn()
    log.write_text(timeout(9))

    second = Reader(first.positions)
    second.follow(log).turn()

    assert second.take() == [9]


def test_the_same_fault_has_the_same_id_however_often_it_is_read(log: Path) -> None:
    readers = [Reader(), Reader()]
    for reader in readers:
        reader.follow(log, is_new=True).turn()

    assert readers[0].findings[0] != readers[1].findings[0]  # it arrived later
    first, second = (reader.findings[0] for reader in readers)
    assert isinstance(first, Fault)
    assert isinstance(second, Fault)
    assert first.id == second.id


def test_a_file_with_two_names_is_told_once_and_belongs_to_both_its_jobs(log: Path) -> None:
    other = log.with_name("link.log")
    other.symlink_to(log)
    reader = Reader()
    first, second = reader.follow(log, job="a"), reader.follow(other, job="b")
    for file in (first, second):
        file.turn()
    append(log, timeout(2))
    first.turn()

    assert second.is_over
    assert reader.take() == [2]
    assert first.jobs == {"a", "b"}
    assert reader.jobs == [None]


def test_a_fault_knows_the_job_whose_log_it_is(log: Path) -> None:
    reader = Reader()
    reader.follow(log, job="a", is_new=True).turn()

    assert reader.jobs == ["a"]


def test_the_end_of_a_last_line_that_never_came_is_not_waited_for(log: Path) -> None:
    reader = Reader()
    file = reader.follow(log)
    file.turn()
    append(log, timeout(2).rstrip("\n"))
    file.turn()
    file.close()

    assert reader.take() == [2]


def test_a_pipe_is_never_opened(tmp_path: Path) -> None:
    """Who writes to it would see a reader."""
    pipe = tmp_path / "pipe.log"
    os.mkfifo(pipe)

    with pytest.raises(NotRegularError, match="a pipe"):
        Reader().follow(pipe).turn()
    with pytest.raises(OSError, match="No such device"):
        os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)


def test_a_loop_of_links_is_an_error(tmp_path: Path) -> None:
    loop = tmp_path / "loop.log"
    loop.symlink_to(loop)

    with pytest.raises(OSError, match="symbolic links"):
        Reader().follow(loop).turn()
