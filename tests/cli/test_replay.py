"""`flapd replay`: what a recording gives, whatever else the engine tells beside outages."""

import json
import os
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from flapd import __version__
from flapd.cli.main import main
from flapd.cli.replay import Replay
from flapd.core.engine import Engine
from flapd.core.fabric.catalogue import LINK_DOWNED, PHYSICAL_STATE, STATE
from flapd.core.fabric.settings import FlapSettings
from flapd.model.event import PortChange
from flapd.model.observation import (
    READ_FIRST,
    READ_STATE,
    READ_WITNESS,
    ClockPair,
    Observation,
    PortSeen,
    PortsPresent,
    Sample,
    Tick,
)
from flapd.model.times import SECOND_NS
from flapd.store.recording import RecordingWriter
from tests.serve.parts import port


def sample(second: float, downs: int, state: int, reads: int = READ_WITNESS | READ_STATE) -> Sample:
    ns = round(second * SECOND_NS)
    values = {LINK_DOWNED: downs, STATE: state, PHYSICAL_STATE: 5 if state == 4 else 2}
    return Sample(port().key, ns, ns + 1000, reads, values)


ONE_FLAP: list[Observation] = [
    ClockPair(0, 1_700_000_000 * SECOND_NS, "boot-1"),
    PortSeen(port(), 0),
    PortsPresent((port().key,), (), 0),
    sample(1, 3, 4, READ_WITNESS | READ_STATE | READ_FIRST),
    sample(1000, 4, 1),
    sample(1002, 4, 4),
    Tick(2000 * SECOND_NS),
]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "one.flapd"
    with closing(RecordingWriter(path, "node17", __version__, 1 << 20)) as writer:
        writer.state(Engine("node17", FlapSettings()).checkpoint())
        writer.observations(ONE_FLAP)
    return path


def test_a_recording_gives_its_outages(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(recording), "--json"]) == 0

    out, err = capsys.readouterr()
    (flap,) = json.loads(out)["items"]
    assert (flap["port"], flap["count"], flap["status"]) == ("mlx5_0/1", 1, "closed")
    assert f"{len(ONE_FLAP)} observations replayed" in err


def test_changes_of_ports_are_told_among_the_events_and_are_no_outages(recording: Path) -> None:
    replay = Replay(recording)

    assert any(isinstance(event, PortChange) for event in replay.events())
    assert len(replay.outages()) == 1


def test_how_far_it_is_is_told_in_bytes(recording: Path) -> None:
    passed: list[int] = []

    Replay(recording, passed.append).outages()

    assert passed == sorted(passed)
    assert passed[-1] == recording.stat().st_size


def test_a_state_that_does_not_hold_together_is_told_in_a_sentence(
    tmp_path: Path, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = Engine("node17", FlapSettings())
    for observation in ONE_FLAP[:5]:
        engine.step(observation)
    state = engine.checkpoint()
    fabric = msgspec.msgpack.decode(state["fabric"])
    fabric["ports"][0]["book"]["outages"] = {}
    inconsistent = {**state, "fabric": msgspec.msgpack.encode(fabric)}
    deep = {**state, "settings": b"\x81\xa4more" + b"\x91" * 100_000 + b"\x00"}

    for number, parts in enumerate((inconsistent, deep)):
        file = tmp_path / f"{number}"
        with closing(RecordingWriter(file, "node17", __version__, 1 << 20)) as writer:
            writer.state(parts)
            writer.observations(ONE_FLAP)
        assert main(["replay", str(file)]) == 2
        err = capsys.readouterr().err
        assert err.startswith(f"flapd: {file} cannot be understood: ")
        assert len(err.splitlines()) == 1


def test_what_need_not_end_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    for file in (str(fifo), "/dev/zero", str(tmp_path)):
        assert main(["replay", file]) == 2
        assert main(["ports", "--from", file]) == 2
        sentence = f"flapd: {file} is no regular file, and nothing else is read"
        assert capsys.readouterr().err.splitlines() == [sentence] * 2


@pytest.mark.parametrize("content", [None, b"", b"no recording"])
def test_what_is_no_recording_is_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)

    assert main(["replay", str(file)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
