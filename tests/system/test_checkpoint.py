"""What is left of a node whose checkpoint another version of flapd wrote."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from simulators.fabric.mount import fuse_missing
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import two_ports
from tests.system.harness import SimulatedNode, simulated_fabric, until
from tests.system.test_eight_ports import total

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    node = SimulatedNode(tmp_path, "[flap]\nmerge_within = 0\nboot_grace = 0")
    yield node
    with suppress(ProcessLookupError):
        node.kill()


def downs(node: SimulatedNode) -> float:
    return total(node.get_text("/metrics"), "flapd_link_downs_total", "mlx5_0/1")


def test_totals_go_on_and_what_was_open_is_told_lost(node: SimulatedNode) -> None:
    fabric = simulated_fabric(node, two_ports((Flap(0.5, 0.3), Flap(2.0, 60.0))), 4.0)
    with fabric:
        node.start()
        until(node.is_ready, "a ready agent")
        until(lambda: downs(node) == 2, "both downs in /metrics")
        node.terminate()
        with closing(sqlite3.connect(node.history)) as history, history:
            history.execute("UPDATE checkpoint SET body = '0' WHERE part = 'version'")

        node.start()
        until(node.is_ready, "a ready agent after the upgrade")

        flaps = node.get("/api/v1/flaps")["items"]
        assert [flap["status"] for flap in flaps] == ["lost", "closed"]
        assert downs(node) == 2
        (port, _) = node.get("/api/v1/ports")["items"]
        assert (port["up"], port["ever_up"], port["watched"]) == (False, True, True)
