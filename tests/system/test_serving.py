"""What is served of a real agent: a flap as it happens, its samples, planned work, repairs."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from simulators.fabric.mount import fuse_missing
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import two_ports
from tests.asking import UnixConnection
from tests.system.harness import SimulatedNode, simulated_fabric, until

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

ORIGIN_IN_SECONDS = 8.0
"""After which the port goes down: by then the agent has started and the stream is open."""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    node = SimulatedNode(tmp_path)
    yield node
    if node.agent is not None and node.agent.poll() is None:
        node.kill()


def asked(node: SimulatedNode, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    with closing(UnixConnection(node.socket)) as connection:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@contextmanager
def streamed(node: SimulatedNode) -> Iterator[Iterator[tuple[str, Any]]]:
    """The events of the stream from now on, by name."""
    with closing(UnixConnection(node.socket)) as connection:
        connection.request("GET", "/api/v1/stream")
        answer = connection.getresponse()

        def events() -> Iterator[tuple[str, Any]]:
            name = ""
            while line := answer.readline().decode().strip("\n") or " ":
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                if field == "data":
                    yield name, json.loads(value)

        yield events()


def test_a_flap_is_streamed_as_it_happens_and_its_samples_show_it(node: SimulatedNode) -> None:
    spec = two_ports((Flap(0.0, 1.0),), ())
    with simulated_fabric(node, spec, ORIGIN_IN_SECONDS):
        node.start()
        until(node.is_ready, "readiness")
        with streamed(node) as events:
            told = next(item for name, item in events if name == "flap" and item["up"])
        port = told["port"]
        listed = node.get("/api/v1/flaps")["items"]
        table = node.get(f"/api/v1/ports/{port}/samples?since=30s&counters=link_downed")
        summary = node.get("/api/v1/summary?since=1h")
        status = node.get("/api/v1/status")

    counts = {row[1] for row in table["rows"]} - {None}
    assert listed[0]["id"] == told["id"]
    assert (told["count"], told["cause"]) == (1, "link")
    assert max(counts) - min(counts) == 1
    assert (summary["flaps"]["outages"], summary["flaps"]["downs"]) == (1, 1)
    assert (status["ready"], status["node"], status["ports"]["up"]) == (True, "node7", 2)
    assert status["config"] == str(node.config)


def test_planned_work_and_repairs_reach_the_port(node: SimulatedNode) -> None:
    with simulated_fabric(node, two_ports((), ()), 1000.0):
        node.start()
        until(node.is_ready, "readiness")
        (port, other) = (item["port"] for item in node.get("/api/v1/ports")["items"])
        wish = {"for_seconds": 600, "reason": "new cable", "port": port}
        status, begun = asked(node, "POST", "/api/v1/maintenance", wish)
        shown = {item["port"]: item["maintenance"] for item in node.get("/api/v1/ports")["items"]}
        ended = asked(node, "DELETE", "/api/v1/maintenance")
        repaired = asked(node, "POST", "/api/v1/repaired", {"port": port, "note": "new cable"})
        after = node.get(f"/api/v1/ports/{port}")

    assert status == 200
    assert [(item["port"], item["reason"]) for item in begun["maintenance"]] == [
        (port, "new cable")
    ]
    assert shown == {port: True, other: False}
    assert ended == (200, {"maintenance": []})
    assert repaired[0] == 200
    assert (after["maintenance"], after["repaired"]["note"]) == (False, "new cable")
