"""One virtual machine without systemd and one with it, each started once for all tests."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kernel.image import built
from tests.kernel.machine import run_machine
from tests.kernel.payload import make_payload
from tests.kernel.reset import Reset
from tests.kernel.told import Watched

_FIGURES = pytest.StashKey[list[str]]()
BARE_SECONDS = 540
SYSTEMD_SECONDS = 360


@pytest.fixture(scope="session")
def payload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_payload(tmp_path_factory.mktemp("payload"))


@pytest.fixture(scope="session")
def bare(payload: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """/out of the machine in which agents run alone: a directory of each."""
    out = tmp_path_factory.mktemp("bare")
    run_machine(built(), payload, out, "tests.kernel.guest.bare", BARE_SECONDS)
    return out


@pytest.fixture(scope="session")
def polling(bare: Path) -> Watched:
    """The agent that only polls."""
    return Watched(bare, "polling")


@pytest.fixture(scope="session")
def events(bare: Path) -> Watched:
    """The agent that hears all that the kernel tells."""
    return Watched(bare, "events")


@pytest.fixture(scope="session", params=["polling", "events"])
def watched(request: pytest.FixtureRequest) -> Watched:
    """Each of the two agents, which were shown the same at the same time."""
    agent: Watched = request.getfixturevalue(request.param)
    return agent


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Takes a line that is shown when all tests have ended."""
    return request.config.stash.setdefault(_FIGURES, []).append


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    figures = config.stash.get(_FIGURES, [])
    if figures:
        terminalreporter.section("in the virtual machine")
        for line in figures:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def reset(payload: Path, tmp_path_factory: pytest.TempPathFactory) -> Reset:
    """The machine with systemd, that was reset in the middle of an outage."""
    out = tmp_path_factory.mktemp("systemd")
    run_machine(built(), payload, out, None, SYSTEMD_SECONDS)
    return Reset(
        json.loads((out / "before_reset.json").read_text()),
        json.loads((out / "after_reset.json").read_text()),
        out / "history.sqlite",
    )
