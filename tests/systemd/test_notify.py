"""The real agent tells its service manager how it is."""

import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.system.harness import SimulatedNode
from tests.systemd.notified import Notified
from tests.trees import lay_out

pytestmark = pytest.mark.system

WATCHDOG_SECONDS = 2
"""Less than a commit waits for a history that somebody holds."""

ONE_PORT = {
    "class/infiniband/mlx5_0/node_guid": "b83f:d203:0012:3450",
    "class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand",
    "class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
    "class/infiniband/mlx5_0/ports/1/phys_state": "5: LinkUp",
    "class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)",
    "class/infiniband/mlx5_0/ports/1/counters/link_downed": "0",
}


@pytest.fixture
def notified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notified]:
    notified = Notified(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", notified.address)
    monkeypatch.setenv("WATCHDOG_USEC", str(WATCHDOG_SECONDS * 1_000_000))
    yield notified
    notified.close()


@pytest.fixture
def node(tmp_path: Path, notified: Notified) -> Iterator[SimulatedNode]:
    node = SimulatedNode(tmp_path)
    lay_out(node.sysfs, {"class/net/README": "a node without RDMA"})
    yield node
    if node.agent is not None and node.agent.poll() is None:
        node.kill()


def test_it_is_ready_without_hardware_feeds_the_watchdog_reloads_and_stops(
    node: SimulatedNode, notified: Notified
) -> None:
    node.start()
    assert node.agent is not None
    heard = notified.until(lambda message: message == "READY=1")
    assert heard == ["EXTEND_TIMEOUT_USEC=200000000", "READY=1"]
    assert node.get_text("/healthz")

    heard = notified.until(lambda message: message == "WATCHDOG=1")
    assert any(message.startswith("STATUS=0 of 0 ports watched") for message in heard)

    before_usec = time.monotonic_ns() // 1000
    node.agent.send_signal(signal.SIGHUP)
    *_, reloading = notified.until(lambda message: message.startswith("RELOADING=1"))
    assert before_usec <= int(reloading.rpartition("=")[2]) <= time.monotonic_ns() // 1000
    notified.until(lambda message: message == "READY=1")

    node.terminate()
    assert notified.waiting()[-1] == "STOPPING=1"
    assert node.agent.returncode == 0


def test_a_refused_reload_ends_as_well(node: SimulatedNode, notified: Notified) -> None:
    node.start()
    assert node.agent is not None
    notified.until(lambda message: message == "READY=1")
    node.config.write_text("sampling.interval = 0")

    node.agent.send_signal(signal.SIGHUP)

    notified.until(lambda message: message.startswith("RELOADING=1"))
    notified.until(lambda message: message == "READY=1")


def test_it_waits_for_the_agent_before_it_and_says_that_this_may_take_long(
    node: SimulatedNode, notified: Notified
) -> None:
    node.start()
    first = node.agent
    assert first is not None
    notified.until(lambda message: message == "READY=1")
    node.start()
    notified.until(lambda message: message.startswith("EXTEND_TIMEOUT_USEC="))

    first.terminate()
    assert first.wait(20) == 0

    notified.until(lambda message: message == "READY=1")


def test_the_watchdog_starves_while_the_engine_hangs(
    node: SimulatedNode, notified: Notified
) -> None:
    """Somebody holds the history: a commit waits for it, and the engine with the commit."""
    node.start()
    notified.until(lambda message: message == "WATCHDOG=1")
    with closing(sqlite3.connect(node.history, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        lay_out(node.sysfs, ONE_PORT)  # what is found is committed at once
        while feeds_within(notified, WATCHDOG_SECONDS):
            pass
        other.execute("ROLLBACK")

    notified.until(lambda message: message == "WATCHDOG=1")


def feeds_within(notified: Notified, seconds: float) -> bool:
    """Whether the watchdog is fed within this time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if notified.next(max(0, deadline - time.monotonic())) == "WATCHDOG=1":
            return True
    return False
