"""The ring: what was appended is read back, and nothing else ever is."""

import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flapd.store.ring import (
    RingError,
    RingRow,
    RingWriter,
    read_ring,
    ring_files,
    ring_path,
)

REPOSITORY = Path(__file__).parents[2]
U64 = st.integers(0, 2**64 - 1)
COLUMNS = ("counters/link_downed", "counters/port_xmit_data", "state")


def writer(
    path: Path, *, columns: tuple[str, ...] = COLUMNS, rows: int = 8, boot: str = "boot-1"
) -> RingWriter:
    return RingWriter(
        path,
        key="0x1/1",
        counted_by="counters/link_downed",
        tier="fast",
        columns=columns,
        rows=rows,
        boot=boot,
    )


def append_numbered(ring: RingWriter, first: int, last: int) -> None:
    for number in range(first, last + 1):
        ring.append(number, number + 1, 1, {"state": number})


def numbers(path: Path) -> list[int]:
    return [row.values["state"] for row in read_ring(path).rows()]


@st.composite
def wide_rows(draw: st.DrawFn) -> tuple[tuple[str, ...], int, list[RingRow]]:
    columns = tuple(f"c{index}" for index in range(draw(st.sampled_from([1, 3, 64, 65, 130]))))
    values = st.dictionaries(st.sampled_from(columns), U64, max_size=5)
    stamps = st.integers(1, 2**63)
    rows = st.lists(st.builds(RingRow, stamps, stamps, st.integers(0, 15), values), max_size=20)
    return columns, draw(st.integers(1, 12)), draw(rows)


@settings(deadline=None)
@given(wide_rows())
def test_the_last_rows_are_read_back_in_order(
    case: tuple[tuple[str, ...], int, list[RingRow]],
) -> None:
    columns, capacity, rows = case
    with TemporaryDirectory() as directory:
        path = Path(directory) / "x.ring"
        ring = writer(path, columns=columns, rows=capacity)
        for row in rows:
            ring.append(row.before_ns, row.after_ns, row.reads, row.values)
        ring.close()

        assert list(read_ring(path).rows()) == rows[-capacity:]


def test_the_header_tells_what_the_ring_holds(tmp_path: Path) -> None:
    path = tmp_path / "x.ring"
    writer(path).close()

    ring = read_ring(path)

    assert (ring.key, ring.tier, ring.boot) == ("0x1/1", "fast", "boot-1")
    assert (ring.columns, ring.capacity, ring.path) == (COLUMNS, 8, path)


def test_a_header_longer_than_a_page_is_read_back(tmp_path: Path) -> None:
    columns = tuple(f"ethtool/some_quite_long_statistic_name_{index}" for index in range(700))
    ring = writer(tmp_path / "x.ring", columns=columns)
    ring.append(1, 2, 8, {columns[-1]: 7})
    ring.close()

    (row,) = read_ring(tmp_path / "x.ring").rows()

    assert row.values == {columns[-1]: 7}


def test_what_was_not_read_is_absent_and_zero_is_zero(tmp_path: Path) -> None:
    ring = writer(tmp_path / "x.ring")
    ring.append(1, 2, 1, {"state": 0, "no_column": 5})
    ring.close()

    (row,) = read_ring(tmp_path / "x.ring").rows()

    assert row.values == {"state": 0}


def test_values_keep_their_low_64_bits(tmp_path: Path) -> None:
    ring = writer(tmp_path / "x.ring")
    ring.append(1, 2, 1, {"state": 2**64 + 3})
    ring.close()

    assert numbers(tmp_path / "x.ring") == [3]


def test_rows_since_a_time_are_those_begun_after_it(tmp_path: Path) -> None:
    ring = writer(tmp_path / "x.ring")
    append_numbered(ring, 1, 5)
    ring.close()

    assert [row.before_ns for row in read_ring(tmp_path / "x.ring").rows(3)] == [4, 5]


@settings(deadline=None)
@given(st.integers(0, 20), st.integers(1, 20))
def test_a_second_writer_goes_on_where_the_first_ended(before: int, after: int) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "x.ring"
        first = writer(path)
        append_numbered(first, 1, before)
        first.close()
        second = writer(path)
        append_numbered(second, before + 1, before + after)
        second.close()

        assert numbers(path) == list(range(1, before + after + 1))[-8:]


@pytest.mark.parametrize(
    "changed", [{"boot": "boot-2"}, {"columns": (*COLUMNS, "new")}, {"rows": 9}]
)
def test_another_boot_or_shape_starts_anew(tmp_path: Path, changed: dict[str, object]) -> None:
    path = tmp_path / "x.ring"
    first = writer(path)
    append_numbered(first, 1, 3)
    first.close()

    writer(path, **changed).close()  # type: ignore[arg-type]

    assert list(read_ring(path).rows()) == []


def test_a_reader_notices_that_the_ring_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.ring"
    writer(path).close()
    ring = read_ring(path)

    writer(path, boot="boot-2").close()

    with pytest.raises(RingError, match="replaced"):
        next(ring.rows())


@settings(deadline=None)
@given(st.integers(1, 8), st.data())
def test_a_torn_row_is_left_out_and_nothing_else(torn: int, data: st.DataObject) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "x.ring"
        ring = writer(path)
        append_numbered(ring, 1, 8)
        ring.close()
        row_bytes = (path.stat().st_size - 8192) // 8
        content = bytearray(path.read_bytes())
        offset = 8192 + (torn - 1) * row_bytes + data.draw(st.integers(0, row_bytes - 1))
        content[offset] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)

        assert numbers(path) == [number for number in range(1, 9) if number != torn]


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 10_000, b"flapring" + b"\xff" * 9000])
def test_a_file_that_is_no_ring_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.ring"
    path.write_bytes(content)

    with pytest.raises(RingError, match=r"x\.ring is no ring"):
        read_ring(path)


def test_a_damaged_header_is_refused_and_its_writer_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.ring"
    writer(path).close()
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)

    with pytest.raises(RingError, match="damaged"):
        read_ring(path)
    writer(path).close()

    assert read_ring(path).key == "0x1/1"


def test_a_missing_ring_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(RingError, match=r"x\.ring cannot be read"):
        read_ring(tmp_path / "x.ring")


def test_a_ring_that_finds_no_space_fails_when_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"space|large"):
        writer(tmp_path / "x.ring", rows=10**13)

    assert list(tmp_path.iterdir()) == []


def test_group_may_read_and_others_may_not(tmp_path: Path) -> None:
    path = tmp_path / "made" / "x.ring"
    writer(path).close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o750


def test_names_of_rings_are_safe_readable_and_listed(tmp_path: Path) -> None:
    path = ring_path(tmp_path, "0000:3b:00.0/1", "fast")
    assert path.name == "0000:3b:00.0+1@fast.ring"

    writer(path).close()

    assert ring_files(tmp_path) == [path]
    assert ring_files(tmp_path / "absent") == []


NAMES = st.text(st.characters(codec="utf-8"), max_size=20)


@settings(deadline=None)
@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES))
def test_no_two_rings_share_a_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    directory = Path("/ring")
    paths = [ring_path(directory, *one), ring_path(directory, *other)]

    assert all(path.parent == directory for path in paths)
    assert (paths[0] == paths[1]) == (one == other)


CHILD = """
    import sys
    from pathlib import Path
    from flapd.store.ring import RingWriter

    columns = [f"c{index}" for index in range(40)]
    ring = RingWriter(
        Path(sys.argv[1]),
        counted_by="counters/link_downed",
        key="k",
        tier="fast",
        columns=columns,
        rows=int(sys.argv[2]),
        boot="b",
    )
    print("ready", flush=True)
    number = 0
    while True:
        number += 1
        ring.append(number, number + 1, 1, dict.fromkeys(columns, number))
"""


def start_child(path: Path, rows: int) -> "subprocess.Popen[str]":
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(path), str(rows)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def kill(child: "subprocess.Popen[str]") -> None:
    with child:
        child.send_signal(signal.SIGKILL)


def test_a_reader_beside_a_writer_at_full_speed_never_sees_a_wrong_row(tmp_path: Path) -> None:
    path = tmp_path / "x.ring"
    child = start_child(path, rows=50)
    try:
        seen: set[int] = set()
        while len(seen) < 3000:
            rows = list(read_ring(path).rows())
            for row in rows:
                assert row.after_ns == row.before_ns + 1
                assert set(row.values.values()) == {row.before_ns}
                assert len(row.values) == 40
            stamps = [row.before_ns for row in rows]
            assert stamps == sorted(set(stamps))
            seen.update(stamps)
    finally:
        kill(child)


def test_a_killed_writer_leaves_rows_without_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "x.ring"
    child = start_child(path, rows=300_000)
    try:
        while len(list(read_ring(path).rows())) < 100:
            pass
    finally:
        kill(child)

    stamps = [row.before_ns for row in read_ring(path).rows()]

    assert stamps == list(range(stamps[0], stamps[0] + len(stamps)))
