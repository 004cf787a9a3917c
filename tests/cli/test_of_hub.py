"""Commands that ask a hub: each port with its node, and what is silent is nothing that is well."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from flapd.cli.main import main
from flapd.cli.target import url_target
from flapd.cli.watch_feed import look_at_all
from flapd.model.times import SECOND_NS
from flapd.serve.hub.routes import hub_app
from flapd.serve.server import Server
from flapd.serve.settings import HttpSettings, Prices
from tests.serve.hub.fake_hub import FakeHub, beat, port
from tests.store.jobs import cause, incident, stall
from tests.store.outages import WALL_NS, outage

NOW = (time.time_ns() - WALL_NS) // SECOND_NS


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[FakeHub]:
    found = FakeHub(tmp_path)
    yield found
    found.close()


@pytest.fixture
def url(hub: FakeHub, tmp_path: Path) -> Iterator[str]:
    started: Future[str] = Future()
    ended = threading.Event()

    async def serve() -> None:
        settings = HttpSettings("127.0.0.1:0", open=True)
        server = Server(hub_app(hub, 1, Prices()), settings, tmp_path / "hub.sock")
        await server.start()
        assert server.tcp_address is not None
        started.set_result(f"http://127.0.0.1:{server.tcp_address[1]}")
        await asyncio.to_thread(ended.wait)
        await server.stop()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    yield started.result(20)
    ended.set()
    thread.join()


Out = pytest.CaptureFixture[str]


def test_status_says_which_nodes_are_not_healthy(hub: FakeHub, url: str, capsys: Out) -> None:
    hub.hears(beat("node1"))
    assert main(["status", "--url", url]) == 0
    assert "all is well" in capsys.readouterr().out

    hub.hears(beat("node2", port(up=False)))
    hub.hears(beat("node3"), ago_seconds=100)
    assert main(["status", "--url", url]) == 1

    out = capsys.readouterr().out
    assert "1 nodes unhealthy, 1 silent" in out
    assert "node2            unhealthy: mlx5_0/1 is down." in out
    assert "node3            unknown: Nothing was heard" in out
    assert "1 of 2 up, 1 down" in out


def test_status_says_that_a_hub_does_not_know_all(hub: FakeHub, url: str, capsys: Out) -> None:
    hub.consuming.connected, hub.consuming.reason = False, "nats://a: gone"

    assert main(["status", "--url", url]) == 1

    out = capsys.readouterr().out
    assert "not all of it is known" in out
    assert "NOT CONNECTED: nats://a: gone" in out


def test_flaps_ports_and_incidents_name_the_node(hub: FakeHub, url: str, capsys: Out) -> None:
    hub.hears(beat("node1"))
    hub.happens(
        outage("flap-1", node="node1", down=NOW - 60, up=NOW - 58),
        stall(node="node2", begin=NOW - 60, end=NOW - 50),
        incident(
            node="node1",
            nodes=("node1", "node2"),
            causes=(cause("flap-1", node="node1"),),
            begin=NOW - 60,
            end=NOW - 50,
        ),
    )

    for command in ("flaps", "ports", "incidents", "why"):
        assert main([command, "--url", url]) == 0
        assert "node1 mlx5_0/1" in " ".join(capsys.readouterr().out.split()), command
    assert main(["flaps", "--url", url, "--node", "node2"]) == 0
    assert "No flaps" in capsys.readouterr().out


def test_what_is_watched_names_the_node(hub: FakeHub, url: str) -> None:
    hub.hears(beat("node1"))
    hub.happens(outage("flap-1", node="node1", down=NOW - 60, up=NOW - 58))

    seen = look_at_all([url_target(url)])

    assert [port.port for port in seen.now.listed.items] == ["node1 mlx5_0/1"]
    assert [flap.port for flap in seen.flaps or ()] == ["node1 mlx5_0/1"]


def test_a_node_is_unhealthy_only_where_the_hub_lets_it_be(
    hub: FakeHub, url: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    flapping = port(flapping=True)
    hub.hears(beat("node1", flapping), beat("node2", flapping), beat("node3"))
    hub.happens(outage("a", node="node2", down=NOW - 60, up=NOW - 58))
    said = {}
    for node in ("node1", "node2", "node3", "node4"):
        monkeypatch.setenv("FLAPD_NODE__NAME", node)
        said[node] = main(["healthcheck", "--url", url]), capsys.readouterr().out.strip()

    assert [status for status, _ in said.values()] == [0, 1, 0, 0]
    assert said["node1"][1] == (
        "healthy: mlx5_0/1 is flapping, with 0 downs; but as many others as may be taken out at "
        "one time are worse (hub.max_drains = 1)"
    )
    assert said["node2"][1] == "unhealthy: mlx5_0/1 is flapping, with 1 downs"
    assert said["node3"][1] == "healthy: nothing speaks against node3"
    assert said["node4"][1] == "healthy, as nothing is known: nothing is heard of node4"


def test_a_hub_that_does_not_answer_is_no_reason(capsys: Out) -> None:
    assert main(["healthcheck", "--url", "http://127.0.0.1:9"]) == 0
    assert "healthy, as nothing is known" in capsys.readouterr().out
