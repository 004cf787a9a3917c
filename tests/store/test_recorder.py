import time
from pathlib import Path

from flapd.model.observation import Tick
from flapd.model.times import SECOND_NS
from flapd.store.recorder import Recorder, Request
from flapd.store.recording import Header, StateFrame, read_recording

PARTS = {"node": b"x"}


def recorder_in(directory: Path) -> Recorder:
    return Recorder(directory, "node7", "0.1.0")


def request(seconds: float, most_bytes: int = 1 << 20) -> Request:
    return Request(time.time_ns() + round(seconds * SECOND_NS), most_bytes)


def test_nothing_is_recorded_unasked(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)

    recorder.resume(PARTS)
    recorder.write([Tick(1)])

    assert not recorder.path.exists()


def test_an_agent_that_was_killed_goes_on_with_its_recording(tmp_path: Path) -> None:
    first = recorder_in(tmp_path)
    first.start(request(60), PARTS)
    first.write([Tick(1)])

    second = recorder_in(tmp_path)
    second.resume({"node": b"y"})
    second.write([Tick(2)])
    second.stop()

    entries = [entry for entry in read_recording(second.path) if not isinstance(entry, Header)]
    assert entries == [StateFrame(PARTS), Tick(1), StateFrame({"node": b"y"}), Tick(2)]


def test_a_recording_that_is_over_is_not_gone_on_with(tmp_path: Path) -> None:
    recorder_in(tmp_path).start(request(-1), PARTS)

    recorder = recorder_in(tmp_path)
    recorder.resume(PARTS)

    assert recorder.request is None


def test_a_recording_ends_by_itself_when_its_time_is_over_or_it_is_full(tmp_path: Path) -> None:
    for index, asked in enumerate((request(-1), request(60, most_bytes=200))):
        recorder = recorder_in(tmp_path / str(index))
        recorder.start(asked, PARTS)

        recorder.write([Tick(number) for number in range(100)])

        assert recorder.request is None
        again = recorder_in(tmp_path / str(index))
        again.resume(PARTS)
        assert again.request is None


def test_a_damaged_request_or_recording_does_not_keep_the_agent_from_starting(
    tmp_path: Path,
) -> None:
    recorder_in(tmp_path).start(request(60), PARTS)
    (tmp_path / "observations.rec").write_bytes(b"something else")

    recorder = recorder_in(tmp_path)
    recorder.resume(PARTS)
    assert recorder.request is None

    (tmp_path / "request.json").write_text("{")
    recorder.resume(PARTS)
    assert recorder.request is None
