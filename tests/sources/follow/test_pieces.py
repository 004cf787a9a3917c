"""The small parts of following."""

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.model.fault import Fault
from flapd.sources.follow.held_back import MOST_ALIKE, WITHIN_NS, HeldBack
from flapd.sources.follow.mounts import Mount, mount_numbered, mount_of, mounts_in
from flapd.sources.follow.pattern import Pattern, fixed_part
from flapd.sources.follow.position import Position, decode, encode
from flapd.sources.follow.regular import NotRegularError, open_regular, read_bounded
from flapd.sources.follow.rotated import rotated_since

MOUNTS = r"""22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:44 / /nfs/log\040files rw,relatime shared:1 - nfs4 server:/logs rw
31 22 0:45 / /nfs rw - lustre mgs@tcp:/fs rw
32 31 0:46 / /nfs rw - beegfs x rw
a line that is none
"""


@pytest.mark.parametrize(
    ("path", "device", "is_shared"),
    [
        ("/var/log/train.log", "8:1", False),
        ("/nfs/log files/a/b.log", "0:44", True),
        ("/nfs/other.log", "0:46", True),
        ("/nfsx/other.log", "8:1", False),
    ],
)
def test_a_path_lies_on_the_file_system_that_is_mounted_last_above_it(
    path: str, device: str, is_shared: bool
) -> None:
    mount = mount_of(path, mounts_in(MOUNTS))

    assert (mount.device, mount.is_shared) == (device, is_shared)


def test_a_mount_is_found_by_its_number_and_a_strange_one_is_unknown() -> None:
    mounts = mounts_in(MOUNTS)

    assert mount_numbered(30, mounts) == Mount(30, "0:44", "/nfs/log files", "nfs4")
    assert mount_numbered(99, mounts).device == "unknown"


@given(st.text())
def test_any_text_as_mounts_gives_mounts_or_none(text: str) -> None:
    mounts_in(text)


@pytest.mark.parametrize(
    ("pattern", "fixed"),
    [
        ("/logs/job-*/rank_?.log", "/logs"),
        ("/logs/train.log", "/logs"),
        ("/*", "/"),
        ("/a/b[12]/c", "/a"),
    ],
)
def test_the_search_begins_where_the_pattern_has_its_first_sign(pattern: str, fixed: str) -> None:
    assert fixed_part(pattern) == fixed


def test_a_pattern_tells_what_is_new_and_follows_no_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "old.log").touch()
    told: list[tuple[str, bool]] = []
    pattern = Pattern(
        str(tmp_path / "**" / "*.log"), lambda path, is_new: told.append((path.name, is_new))
    )
    pattern.turn()
    (tmp_path / "a" / "new.log").touch()
    pattern.turn()

    assert sorted(told) == [("new.log", True), ("old.log", False), ("old.log", True)]


def test_positions_come_back_as_they_were_kept_and_damaged_ones_are_none() -> None:
    kept = {"8:1 /a": Position("8:1 /a", 5, 7)}

    assert decode(encode(kept)) == kept
    assert decode(b"[{]") == decode(b"\xff") == {}


def test_of_very_many_positions_the_newest_are_kept() -> None:
    kept = {f"{number}": Position(f"{number}", number) for number in range(5000)}

    again = decode(encode(kept))

    assert len(again) == 4096
    assert "4999" in again


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_only_a_regular_file_is_opened(tmp_path: Path, make: "type[object]") -> None:
    make(tmp_path / "x")  # type: ignore[call-arg]

    with pytest.raises(NotRegularError):
        open_regular(tmp_path / "x")


def test_a_link_is_opened_only_where_it_may(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to("file")
    fd = open_regular(tmp_path / "link")
    os.close(fd)

    with pytest.raises(NotRegularError, match="symbolic link"):
        open_regular(tmp_path / "link", follow=False)


def test_what_is_longer_than_the_bound_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    fd = open_regular(tmp_path / "file")

    assert read_bounded(fd, 5) == b"12345"
    assert read_bounded(fd, 4) is None
    os.close(fd)


def test_rotated_neighbours_are_those_that_are_young_and_can_be_read(tmp_path: Path) -> None:
    for name in ("t.log", "t.log.1", "t.log.2.gz", "other.log", "t.log-old"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "t.log-old", ns=(0, 0))
    since_ns = (tmp_path / "t.log").stat().st_mtime_ns

    assert rotated_since(tmp_path / "t.log", since_ns) == [tmp_path / "t.log.1"]


FAULT = Fault(
    id="f", kind="transport_error", form="completion", text="", time_ns=1, clock_error_ns=0, pid=7
)


def test_a_stream_of_the_same_error_is_cut_off_and_counted() -> None:
    held = HeldBack(lambda: 0)
    told = [fault for fault in [FAULT] * (MOST_ALIKE + 50) if not held.holds(fault)]

    assert (len(told), held.count) == (MOST_ALIKE, 50)


def test_errors_that_differ_and_those_a_minute_later_pass() -> None:
    now_ns = 0
    held = HeldBack(lambda: now_ns)
    for seq in range(1000):
        assert not held.holds(msgspec.structs.replace(FAULT, seq=seq))
    for _ in range(MOST_ALIKE + 1):
        held.holds(FAULT)
    now_ns = WITHIN_NS + 1

    assert not held.holds(FAULT)
