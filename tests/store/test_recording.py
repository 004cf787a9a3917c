"""A recording: what was recorded is read back, and damage is never taken for data."""

import resource
import stat
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flapd.model.observation import (
    ClockPair,
    Observation,
    PortSeen,
    PortsPresent,
    ReaderStuck,
    Sample,
    Tick,
)
from flapd.model.port import Port
from flapd.store.frames import encode_frame
from flapd.store.recording import (
    Entry,
    Header,
    RecordingError,
    RecordingFullError,
    RecordingWriter,
    StateFrame,
    read_recording,
)

HEADER = Header("1.0", "node-1")
TICKS: list[Observation] = [Tick(number) for number in range(200)]
I64 = st.integers(-(2**63), 2**63 - 1)
U64 = st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=10)
SAMPLES = st.builds(
    Sample,
    key=TEXT,
    before_ns=I64,
    after_ns=I64,
    reads=st.integers(0, 63),
    values=st.dictionaries(TEXT, U64, max_size=3),
    errors=st.dictionaries(TEXT, TEXT, max_size=2),
)
PORTS = st.builds(
    Port, key=TEXT, device=TEXT, number=I64, link_layer=TEXT, witnesses=st.tuples(TEXT)
)
OBSERVATIONS = st.one_of(
    SAMPLES,
    st.builds(Tick, I64),
    st.builds(PortsPresent, st.tuples(TEXT), st.tuples(), I64),
    st.builds(ReaderStuck, TEXT, st.none() | I64, I64),
    st.builds(ClockPair, I64, I64, TEXT),
    st.builds(PortSeen, PORTS, I64),
)
BATCHES = st.lists(OBSERVATIONS, max_size=30)
STATES = st.dictionaries(TEXT, st.binary(max_size=50), max_size=3)
Written: TypeAlias = list[Observation] | dict[str, bytes]


def write(path: Path, *parts: Written, max_bytes: int = 1 << 30) -> None:
    recording = RecordingWriter(path, "node-1", "1.0", max_bytes)
    for part in parts:
        if isinstance(part, dict):
            recording.state(part)
        else:
            recording.observations(part)
    recording.close()


def read(path: Path) -> list[Entry]:
    return list(read_recording(path))


@settings(deadline=None)
@given(st.lists(st.lists(BATCHES | STATES, max_size=4), min_size=1, max_size=3))
def test_everything_is_read_back_in_order_over_several_starts(
    starts: list[list[Written]],
) -> None:
    wanted: list[Entry] = []
    with TemporaryDirectory() as directory:
        path = Path(directory) / "x.rec"
        for parts in starts:
            write(path, *parts)
            wanted.append(HEADER)
            for part in parts:
                wanted += [StateFrame(part)] if isinstance(part, dict) else part

        assert read(path) == wanted


def test_a_batch_of_many_frames_is_read_back(tmp_path: Path) -> None:
    write(tmp_path / "x.rec", TICKS * 10)

    assert read(tmp_path / "x.rec") == [HEADER, *TICKS * 10]


@settings(deadline=None)
@given(st.data())
def test_a_torn_last_frame_is_left_out_and_cut_off_by_the_next_writer(
    data: st.DataObject,
) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "x.rec"
        write(path, [Tick(1)])
        whole = path.stat().st_size
        write(path, [Tick(2)])
        end = data.draw(st.integers(whole + 1, path.stat().st_size - 1))
        content = path.read_bytes()[:end]
        path.write_bytes(content)

        torn = read(path)
        assert torn in ([HEADER, Tick(1)], [HEADER, Tick(1), HEADER])
        write(path, [Tick(3)])
        assert read(path) == [*torn, HEADER, Tick(3)]


def test_a_last_frame_whose_bytes_did_not_all_arrive_is_torn_too(tmp_path: Path) -> None:
    path = tmp_path / "x.rec"
    write(path, [Tick(1)])
    content = path.read_bytes()
    path.write_bytes(content[:-2] + b"\0\0")

    assert read(path) == [HEADER]


@settings(deadline=None)
@given(st.data())
def test_a_wrong_byte_before_the_last_frame_is_refused_with_its_place(
    data: st.DataObject,
) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "x.rec"
        write(path, [Tick(1)], {"ledger": b"state"})
        last = path.stat().st_size
        write(path)
        content = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, last - 1))
        content[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)

        with pytest.raises(RecordingError, match=r"x\.rec") as refused:
            read(path)
        with pytest.raises(RecordingError):
            write(path)
        if place >= len("flapd recording 1\n"):
            assert "frame at byte" in str(refused.value)
        assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"no recording at all, but a longer text"])
def test_a_file_that_is_no_recording_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.rec"
    path.write_bytes(content)

    with pytest.raises(RecordingError, match=r"x\.rec is no recording"):
        read(path)


def test_a_writer_leaves_a_file_of_others_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes, none of flapd's business")

    with pytest.raises(RecordingError, match=r"notes\.txt"):
        write(path)

    assert path.read_text() == "my notes, none of flapd's business"


def test_a_missing_recording_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"x\.rec: No such file"):
        read(tmp_path / "x.rec")


def test_a_full_recording_takes_nothing_of_what_would_pass_its_size(tmp_path: Path) -> None:
    path = tmp_path / "x.rec"
    recording = RecordingWriter(path, "node-1", "1.0", max_bytes=300)

    with pytest.raises(RecordingFullError, match="300 bytes"):
        recording.observations(TICKS)
    recording.observations([Tick(1)])
    recording.close()

    assert read(path) == [HEADER, Tick(1)]


def test_a_write_that_fails_midway_leaves_whole_frames(tmp_path: Path) -> None:
    path = tmp_path / "x.rec"
    recording = RecordingWriter(path, "node-1", "1.0", 1 << 30)
    recording.observations([Tick(1)])
    _soft, hard = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores SIGXFSZ, so the kernel writes what fits and then answers EFBIG.
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, hard))
    try:
        with pytest.raises(RecordingError, match="too large"):
            recording.observations(TICKS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    recording.observations([Tick(2)])
    recording.close()

    assert read(path) == [HEADER, Tick(1), Tick(2)]


def test_reading_does_not_hold_the_file_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.rec"
    write(path, *[{"part": bytes(1 << 20)}] * 20)

    tracemalloc.start()
    try:
        assert sum(1 for _ in read_recording(path)) == 21
        _now, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 10 << 20


def test_a_frame_beyond_the_largest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="16777216 bytes"):
        write(tmp_path / "x.rec", {"part": bytes(17 << 20)})

    frame = encode_frame(bytes(17 << 20))
    with (tmp_path / "x.rec").open("ab") as file:
        file.write(frame)
    with pytest.raises(RecordingError, match="longer than 16777216 bytes"):
        read(tmp_path / "x.rec")


def test_group_may_read_and_others_may_not(tmp_path: Path) -> None:
    write(tmp_path / "x.rec")

    assert stat.S_IMODE((tmp_path / "x.rec").stat().st_mode) == 0o640
