"""One virtual machine without systemd and one with it, each run once, beside the other tests."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kernel.image import is_debian_12
from tests.kernel.machines import PROGRAMS, Machines
from tests.kernel.reset import Reset
from tests.kernel.told import Watched

_FIGURES = pytest.StashKey[list[str]]()
_MACHINES = pytest.StashKey[Machines]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The machines have the time of all other tests."""
    items.sort(key=lambda item: item.get_closest_marker("kernel") is not None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Starts those that a test asks for which will not be skipped."""
    asked = {
        name
        for item in session.items
        if isinstance(item, pytest.Function) and item.get_closest_marker("kernel") is not None
        if not any(mark.args[0] for mark in item.iter_markers("skipif"))
        for name in item.fixturenames
    }
    wanted = asked & PROGRAMS.keys() - (set() if is_debian_12() else {"systemd"})
    if wanted and not session.config.option.collectonly:
        session.config.stash[_MACHINES] = Machines(wanted)


def pytest_sessionfinish(session: pytest.Session) -> None:
    machines = session.config.stash.get(_MACHINES, None)
    if machines is not None:
        machines.stop()


@pytest.fixture(scope="session")
def bare(request: pytest.FixtureRequest) -> Path:
    """/out of the machine in which agents run alone: a directory of each."""
    return request.config.stash[_MACHINES].out("bare")


@pytest.fixture(scope="session")
def systemd(request: pytest.FixtureRequest) -> Path:
    """/out of the machine with systemd, that was reset in the middle of an outage."""
    if not is_debian_12():
        pytest.skip("the package that is installed there is for Debian 12")
    return request.config.stash[_MACHINES].out("systemd")


@pytest.fixture(scope="session")
def polling(bare: Path) -> Watched:
    """The agent that only polls."""
    return Watched(bare, "polling")


@pytest.fixture(scope="session")
def events(bare: Path) -> Watched:
    """The agent that hears all that the kernel tells."""
    return Watched(bare, "events")


@pytest.fixture(scope="session", params=["polling", "events"])
def watched(request: pytest.FixtureRequest, bare: Path) -> Watched:
    """Each of the two agents, which were shown the same at the same time."""
    return Watched(bare, request.param)


@pytest.fixture(scope="session")
def reset(systemd: Path) -> Reset:
    return Reset(
        json.loads((systemd / "before_reset.json").read_text()),
        json.loads((systemd / "after_reset.json").read_text()),
        systemd / "history.sqlite",
    )


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
