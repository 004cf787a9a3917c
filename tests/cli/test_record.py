"""`flapd record`: a recording becomes a file, and never replaces one."""

from typing import Any

import pytest

from tests.cli.here import Here, agent_at
from tests.serve.parts import FakeAgent


def test_a_recording_becomes_a_file(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    class Short(FakeAgent):
        """Has recorded all there is by the time it says it began."""

        def start_recording(self, seconds: float, max_bytes: int) -> Any:
            began = super().start_recording(seconds, max_bytes)
            self.file.write_bytes(b"observations" * 10_000)
            self.stop_recording()
            return began

    into = here.directory / "out.flapd"

    with agent_at(here) as (agent, _):
        agent.__class__ = Short
        assert here.command("record", "-o", str(into), "--for", "2s") == 0

    assert into.read_bytes() == b"observations" * 10_000
    assert "120000 bytes" in capsys.readouterr().err


def test_a_recording_never_overwrites(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    into = here.directory / "out.flapd"
    into.write_text("precious")

    with agent_at(here) as (agent, _):
        assert here.command("record", "-o", str(into)) == 2
        assert agent.status is None

    assert into.read_text() == "precious"
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(("span", "status"), [("soon", 2), ("2s", 3)])
def test_a_recording_that_does_not_begin_leaves_no_file(
    here: Here, capsys: pytest.CaptureFixture[str], span: str, status: int
) -> None:
    into = here.directory / "out.flapd"

    with agent_at(here) as (agent, _):
        agent.disk_is_full = True
        assert here.command("record", "-o", str(into), "--for", span) == status

    assert not into.exists()
    assert len(capsys.readouterr().err.splitlines()) == 1
