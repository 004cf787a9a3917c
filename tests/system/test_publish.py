"""The real agent tells a real NATS server; both are killed, and the stream has everything once."""

import asyncio
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from flapd.model.event import Event
from flapd.model.fleet import NodeEvent, decode_heartbeat, decode_node_event
from flapd.store.history_reader import HistoryReader
from simulators.fabric.mount import fuse_missing
from simulators.fabric.schedule import random_flaps
from simulators.fabric.spec import two_ports
from simulators.fabric.truth import Truth
from tests.fleet.nats_server import NatsServer, client, make_stream, messages
from tests.system.harness import SimulatedNode, simulated_fabric, until

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

FLAPS_A_PORT = 8
NODE = "node7"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    found = NatsServer(tmp_path / "nats")
    found.start()
    yield found
    found.kill()


@pytest.fixture
def node(tmp_path: Path, server: NatsServer) -> Iterator[SimulatedNode]:
    alone = "[jobs]\ndiscover = false\n[logs]\ndiscover = false"
    fleet = f'[fleet]\nservers = ["{server.url}"]'
    node = SimulatedNode(tmp_path, f"[flap]\nmerge_within = 0\n{alone}\n{fleet}")
    yield node
    if node.agent is not None and node.agent.poll() is None:
        node.kill()


async def prepare(url: str) -> None:
    connection = await client(url)
    await make_stream(connection)
    await connection.close()


async def stream_of(url: str) -> list[NodeEvent]:
    connection = await client(url)
    found = [decode_node_event(message.data) for message in await messages(connection)]
    await connection.close()
    return found


async def next_beat(url: str) -> Any:
    connection = await client(url)
    heard = await connection.subscribe("flapd-heartbeat.>")
    message = await heard.next_msg(60)
    await connection.close()
    return decode_heartbeat(message.data)


def journal_of(node: SimulatedNode) -> list[tuple[int, Event]]:
    with closing(HistoryReader(node.history)) as reader:
        return reader.events_after(0, 10_000)


def fleet_of(node: SimulatedNode) -> Any:
    with suppress(OSError):
        return node.get("/api/v1/status")["fleet"]
    return None


def is_told(node: SimulatedNode) -> bool:
    fleet = fleet_of(node)
    return bool(fleet and fleet["connected"] and not fleet["reason"] and not fleet["outbox_events"])


def test_the_stream_has_all_of_the_history_once_and_in_order_whoever_is_killed(
    server: NatsServer, node: SimulatedNode
) -> None:
    asyncio.run(prepare(server.url))
    flaps = [
        random_flaps(
            seed=seed,
            count=FLAPS_A_PORT,
            shortest_seconds=0.1,
            longest_seconds=0.8,
            begin_seconds=0.5,
            gap_seconds=0.6,
        )
        for seed in (3, 4)
    ]
    fabric = simulated_fabric(node, two_ports(*flaps), origin_in_seconds=4.0)
    with fabric as truth, ThreadPoolExecutor(1) as background:
        node.start()
        until(node.is_ready, "a ready agent")
        until(lambda: len(journal_of(node)) > 4, "the first flaps")
        server.kill()
        until(lambda: fleet_of(node)["outbox_events"] >= 4, "a full outbox")
        assert "flapd_fleet_connected 0.0" in node.get_text("/metrics")
        node.kill()
        server.start()
        node.start()
        until(lambda: is_told(node), "all of it", 60)
        heard = background.submit(asyncio.run, next_beat(server.url))
        forget_the_cursor(node)
        until(lambda: is_over(node, truth), "the last flap", 60)
        until(lambda: is_told(node), "the rest", 60)
        metrics = node.get_text("/metrics")
        assert node.terminate() < 5

    found, history = asyncio.run(stream_of(server.url)), journal_of(node)
    assert [(one.seq, one.event) for one in found] == history
    assert {(one.cluster, one.node) for one in found} == {("default", NODE)}
    assert len({one.message_id for one in found}) == len(history) > 2 * FLAPS_A_PORT
    assert "flapd_fleet_connected 1.0" in metrics
    assert "flapd_outbox_events 0.0" in metrics
    beat = heard.result()
    assert (beat.cluster, beat.node) == ("default", NODE)
    assert {port.port for port in beat.ports} <= {"mlx5_0/1", "mlx5_1/1"}


def is_over(node: SimulatedNode, truth: Truth) -> bool:
    """Downs while the agent was away are told as one flap with their count."""
    told = node.get("/api/v1/flaps?limit=1000")["items"]
    downs = sum(one["count"] for one in told)
    return downs == len(truth.outages) and all(one["status"] == "closed" for one in told)


def forget_the_cursor(node: SimulatedNode) -> None:
    """As if it had been killed before it kept any: it tells everything again."""
    node.kill()
    with closing(sqlite3.connect(node.history)) as history, history:
        history.execute("DELETE FROM checkpoint WHERE part = 'outbox'")
    node.start()
    until(node.is_ready, "a ready agent again")


def test_an_agent_whose_credentials_are_of_no_use_does_not_start(
    node: SimulatedNode, tmp_path: Path
) -> None:
    missing = tmp_path / "none.seed"
    node.config.write_text(node.config.read_text() + f'\ncredentials = "{missing}"\n')
    (tmp_path / "sys/class/infiniband").mkdir(parents=True)

    ended = node.flapd("run", "--config", str(node.config))

    assert ended.returncode == 2
    assert f"fleet.credentials: {missing} cannot be read" in ended.stderr
