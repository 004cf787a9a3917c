"""`flapd healthcheck` while the agent is killed and started: it never drains the node."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from flapd.cli.main import main
from simulators.fabric.mount import fuse_missing
from simulators.fabric.spec import Fault, two_ports
from tests.system.harness import SimulatedNode, simulated_fabric, until

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

HANGS = Fault("/class/infiniband/mlx5_0/*", "hang", begin_seconds=0.0, end_seconds=20.0)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    node = SimulatedNode(tmp_path, "[ports]\nexpect = 2")
    yield node
    with suppress(ProcessLookupError):
        node.kill()


@contextmanager
def asked_all_the_time(node: SimulatedNode) -> Iterator[list[int]]:
    """How every health check ended that ran meanwhile, one after the other, in this process."""
    statuses: list[int] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            statuses.append(main(["healthcheck", "--config", str(node.config)]))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield statuses
    finally:
        over.set()
        thread.join()


def test_an_agent_that_starts_again_and_again_drains_nobody(node: SimulatedNode) -> None:
    with simulated_fabric(node, two_ports(), 0.0), asked_all_the_time(node) as statuses:
        for _ in range(5):
            node.start()
            until(node.is_ready, "a ready agent")
            node.kill()

    assert set(statuses) == {0}


@pytest.mark.parametrize("forgets", [False, True])
def test_a_device_that_hangs_over_a_restart_drains_nobody(
    node: SimulatedNode, capsys: pytest.CaptureFixture[str], forgets: bool
) -> None:
    """Neither where its ports are known, nor where they never were."""
    spec = msgspec.structs.replace(two_ports(), faults=(HANGS,))
    with simulated_fabric(node, spec, 6.0), asked_all_the_time(node) as statuses:
        node.start()
        until(node.is_ready, "a ready agent")
        until(lambda: node.get("/api/v1/status")["sampler"]["stuck"], "a stuck reader")
        for _ in range(2):
            node.kill()
            if forgets:
                for file in node.history.parent.glob("history.sqlite*"):
                    file.unlink()
            node.start()
            until(node.is_ready, "a ready agent")
            listed = node.get("/api/v1/ports")
            assert listed["blind"] == ["mlx5_0"]
            assert [item["device"] for item in listed["items"]][forgets - 1 :] == ["mlx5_1"]

    assert set(statuses) == {0}
    assert "mlx5_0" in capsys.readouterr().out
