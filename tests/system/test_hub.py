"""A real hub on a real server: what it tells of nodes, also of the silent, and to commands."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flapd.fleet.subjects import event_subject, heartbeat_subject
from flapd.model.event import Event
from flapd.model.fleet import FLEET_VERSION, Heartbeat, NodeEvent, encode
from flapd.model.times import SECOND_NS
from tests.fleet.nats_server import NatsServer, client, make_stream, settled
from tests.serve.hub.fake_hub import beat, port
from tests.store.jobs import fault
from tests.store.outages import WALL_NS, outage
from tests.system.harness import until
from tests.system.running_hub import RunningHub

pytestmark = pytest.mark.system

NOW = (time.time_ns() - WALL_NS) // SECOND_NS
"""Seconds, as times of events are told in."""
TOPOLOGY = "node,device,port,switch,switch_port\nnode1,mlx5_0,1,leaf7,12\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    found = NatsServer(tmp_path / "nats")
    found.start()
    yield found
    found.kill()


@pytest.fixture
def hub(tmp_path: Path, server: NatsServer) -> Iterator[RunningHub]:
    topology = tmp_path / "topology.csv"
    topology.write_text(TOPOLOGY)
    config = f'[hub]\ntopology = "{topology}"\nmax_drains = 1'
    found = RunningHub(tmp_path / "hub", [server.url], config)
    yield found
    if found.agent is not None and found.agent.poll() is None:
        found.kill()


async def tell(url: str, *told: Event | Heartbeat) -> None:
    connection = await client(url)
    for one in told:
        if isinstance(one, Heartbeat):
            await connection.publish(heartbeat_subject("default", one.node), encode(one))
        else:
            event = NodeEvent(FLEET_VERSION, "default", one.node, 1, one)
            await connection.publish(event_subject("default", one.node, event.kind), encode(event))
    await settled(connection)
    await connection.close()


async def prepare(url: str) -> None:
    connection = await client(url)
    await make_stream(connection)
    await connection.close()


def flap(flap_id: str, node: str, ago: float, **changes: Any) -> Event:
    return outage(flap_id, node=node, down=NOW - ago, up=NOW - ago + 2, **changes)


def started(hub: RunningHub, server: NatsServer) -> None:
    asyncio.run(prepare(server.url))
    hub.start()
    until(hub.is_ready, "a ready hub")


def heard(hub: RunningHub, server: NatsServer, *told: Event | Heartbeat) -> None:
    asyncio.run(tell(server.url, *told))
    nodes = {one.node for one in told}
    until(lambda: nodes <= {one["node"] for one in hub.items("nodes")}, "the nodes")


def test_nodes_ports_and_outages_are_told_with_their_node(
    hub: RunningHub, server: NatsServer
) -> None:
    started(hub, server)
    flaps = [flap("flap-1", "node1", 60), flap("flap-2", "node2", 50), flap("flap-3", "node2", 40)]
    beats = beat("node1", port()), beat("node2", port(up=False))
    heard(hub, server, *flaps, *beats, fault(node="node2", primary=True, at=NOW - 30))
    until(lambda: len(hub.items("flaps")) == 3, "the outages")
    until(lambda: hub.get("/api/v1/nodes/node2")["health"] == "unhealthy", "the heartbeats")

    first, second = hub.items("nodes")
    assert (first["node"], first["health"], second["health"]) == ("node1", "healthy", "unhealthy")
    assert second["reasons"] == ["mlx5_0/1 is down."]
    assert (first["version"], first["events_waiting"], first["jobs"]) == ("0.1.0", 2, ["4711"])
    assert first["clock"]["low"] <= 0 <= first["clock"]["high"]
    here = hub.get("/api/v1/nodes/node1/ports/mlx5_0/1")
    assert (here["node"], here["up"], here["flaps_24h"]) == ("node1", True, 1)
    assert here["peer"] == {"switch": "leaf7", "port": "12"}
    assert [one["up"] for one in hub.items("ports")] == [True, False]
    assert [one["node"] for one in hub.get("/api/v1/flaps?node=node2")["items"]] == ["node2"] * 2
    assert [one["node"] for one in hub.get("/api/v1/faults")["items"]] == ["node2"]
    assert hub.get("/api/v1/faults?node=node1")["items"] == []
    unhealthy = hub.get("/api/v1/nodes?health=unhealthy")["items"]
    assert [one["node"] for one in unhealthy] == ["node2"]

    shown = hub.flapd("flaps", "--config", str(hub.config), "--utc")
    assert re.search(r"node1\s+mlx5_0/1", shown.stdout), shown.stdout + shown.stderr
    asked = hub.flapd("flaps", "--config", str(hub.config), "--node", "node2", "--json")
    assert [one["id"] for one in json.loads(asked.stdout)["items"]] == ["flap-3", "flap-2"]
    ended = hub.flapd("status", "--config", str(hub.config))
    assert ended.returncode == 1
    assert "1 of 2 healthy, 1 not, 0 silent" in ended.stdout
    assert "node2" in ended.stdout
    metrics = hub.get_text("/metrics")
    assert 'flapd_hub_nodes{health="healthy"} 1.0' in metrics
    assert 'flapd_hub_events_total{kind="flap"} 3.0' in metrics
    assert 'flapd_gpu_seconds_lost_total{regime="watchdog"} 0.0' in metrics
    assert "flapd_hub_lag_events 0.0" in metrics
    assert hub.terminate() < 5


@pytest.mark.long
def test_a_node_that_is_silent_is_unknown_and_is_not_forgotten_by_a_restart(
    hub: RunningHub, server: NatsServer
) -> None:
    """Of one that only told events nothing is known either."""
    started(hub, server)
    heard(hub, server, beat("node1", port()), flap("flap-2", "node2", 50))
    until(lambda: hub.get("/api/v1/nodes/node1")["health"] == "healthy", "the heartbeat")
    silent = hub.get("/api/v1/nodes/node2")
    assert (silent["health"], silent["ports"], silent["seen"]) == ("unknown", None, None)

    assert hub.terminate() < 5
    hub.start()
    until(hub.is_ready, "a ready hub again")

    known = {one["node"]: one["health"] for one in hub.items("nodes")}
    assert known == {"node1": "healthy", "node2": "unknown"}
    assert [one["id"] for one in hub.items("flaps")] == ["flap-2"]


@pytest.mark.long
def test_no_more_nodes_are_called_unhealthy_at_one_time_than_may_be(
    hub: RunningHub, server: NatsServer
) -> None:
    started(hub, server)
    bad = port(flapping=True)
    many = [flap(f"flap-{number}", "node2", 50 + number) for number in range(3)]
    heard(hub, server, beat("node1", bad), beat("node2", bad), beat("node3", port()))
    heard(hub, server, flap("flap-a", "node1", 60), *many)
    until(lambda: len(hub.items("flaps")) == 4, "the outages")

    def said(node: str) -> tuple[bool, bool | None]:
        told = hub.get(f"/api/v1/drains?node={node}")
        return told["known"], None if told["node"] is None else told["node"]["granted"]

    assert [said(f"node{number}") for number in (1, 2, 3, 4)] == [
        (True, False),
        (True, True),
        (True, None),
        (False, None),
    ]
    assert hub.get("/api/v1/drains?node=node1")["cap"] == 1


def test_a_hub_without_a_fleet_does_not_start(tmp_path: Path) -> None:
    hub = RunningHub(tmp_path / "hub", [])

    ended = hub.flapd("hub", "--config", str(hub.config))

    assert ended.returncode == 2
    assert ended.stderr == "flapd: fleet.servers names none, and a hub has no other source\n"
