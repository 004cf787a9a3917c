import socket
import threading
from collections.abc import Iterator

import pytest

from flapd.sources.child_link import make_link
from flapd.sources.launcher import serve
from flapd.sources.launcher_process import LauncherProcess
from flapd.sources.starting import Child

WITHIN_SECONDS = 20.0
SAMPLER = "flapd.sources.sampler"


@pytest.fixture
def launcher() -> Iterator[LauncherProcess]:
    launcher = LauncherProcess()
    yield launcher
    assert any(launcher.stop() for _ in range(20))


@pytest.fixture
def link() -> Iterator[socket.socket]:
    ours, theirs = make_link()
    with ours, theirs:
        yield theirs


@pytest.fixture
def child(launcher: LauncherProcess, link: socket.socket) -> Iterator[Child]:
    """A sampler that waits for its orders, for as long as somebody has the other end."""
    child = launcher.start_child(SAMPLER, link)
    yield child
    child.kill()
    assert child.has_ended(WITHIN_SECONDS)


def test_a_child_is_ended_and_its_end_is_known_although_another_process_started_it(
    child: Child,
) -> None:
    assert not child.has_ended(0.0)
    child.kill()

    assert child.has_ended(WITHIN_SECONDS)
    child.kill()  # whoever has its number now is somebody else


def test_a_child_ends_with_the_agents_end_of_its_own_link(launcher: LauncherProcess) -> None:
    ours, theirs = make_link()
    with ours, theirs:
        child = launcher.start_child(SAMPLER, theirs)

    assert child.has_ended(WITHIN_SECONDS)


@pytest.mark.parametrize("module", ["os", "flapd.cli.main", ""])
def test_nothing_else_is_started_by_what_has_the_privileges(
    link: socket.socket, module: str
) -> None:
    agents, launchers = make_link()
    with agents, launchers:
        served = threading.Thread(target=serve, args=(launchers,))
        served.start()
        socket.send_fds(agents, [module.encode() or b" "], [link.fileno()])
        served.join(WITHIN_SECONDS)

        assert not served.is_alive()
