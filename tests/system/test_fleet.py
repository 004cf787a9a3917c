"""Real servers and real hubs: whatever is killed, each hub has what all nodes told, once."""

import asyncio
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulators.cluster.feeder import Feeder
from simulators.cluster.fleet import Arrival, Fleet
from simulators.cluster.message import Message, event_message
from simulators.cluster.spec import Flap, FleetSpec, PlacedJob
from simulators.job.spec import JobSpec
from tests.fleet.nats_server import NatsServer, client, make_stream
from tests.system.harness import until
from tests.system.running_hub import RunningHub, union

pytestmark = pytest.mark.system

AT = 420.0
AGO_SECONDS = 3600
NODES = 16


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    found = NatsServer(tmp_path / "nats")
    found.start()
    yield found
    found.kill()


@pytest.fixture
def hubs(tmp_path: Path, server: NatsServer) -> Iterator[tuple[RunningHub, RunningHub]]:
    found = RunningHub(tmp_path / "h1", [server.url]), RunningHub(tmp_path / "h2", [server.url])
    yield found
    for hub in found:
        if hub.agent is not None and hub.agent.poll() is None:
            hub.kill()


def some_fleet(down_seconds: float = 100.0) -> Fleet:
    """A flap that ended a job an hour ago, told by nodes that were no cause of it, and two more."""
    job = PlacedJob(JobSpec(nodes=NODES, restarts=0, duration_seconds=AT + 300.0))
    flap = Flap(at_seconds=AT, down_seconds=down_seconds, node=5, port=3)
    innocent = Flap(at_seconds=AT + 2.0, down_seconds=4.0, node=9, port=8)
    early = Flap(at_seconds=AT - 60.0, down_seconds=0.2, node=2, port=8)
    return Fleet(
        FleetSpec(
            nodes=NODES,
            pod_nodes=8,
            watched_from_seconds=240.0,
            largest_skew_seconds=0.2,
            origin_unix_ns=time.time_ns() - AGO_SECONDS * 1_000_000_000,
            jobs=(job,),
            happenings=(early, flap, innocent),
        )
    )


def shaken(arrivals: list[Arrival], rng: random.Random) -> list[Message]:
    """In any order, and a third of them twice, without what the stream knows doubles by."""
    messages = [event_message(one.event) for one in arrivals]
    doubled = [one._replace(id=None) for one in rng.sample(messages, len(messages) // 3)]
    messages += doubled
    rng.shuffle(messages)
    return messages


async def fed(url: str, messages: list[Message]) -> int:
    """How many the stream answered for; fewer where it went away meanwhile."""
    connection = await client(url)
    feeder = Feeder(connection)
    await feeder.start()
    try:
        await feeder.feed(messages)
    finally:
        await connection.close()
    return feeder.fed.answered


async def prepare(url: str) -> None:
    connection = await client(url)
    await make_stream(connection)
    await connection.close()


def test_hubs_have_what_all_nodes_told_once_whoever_is_killed(
    server: NatsServer, hubs: tuple[RunningHub, RunningHub]
) -> None:
    asyncio.run(prepare(server.url))
    first, second = hubs
    arrivals = list(some_fleet().events())
    told = union(one.event.event for one in arrivals)
    messages = shaken(arrivals, random.Random(1))
    half = len(messages) // 2

    first.start()
    asyncio.run(fed(server.url, messages[:half]))
    until(first.is_ready, "a ready hub")
    until(lambda: sum(map(len, first.held().values())) > half // 4, "some of it")
    first.kill()
    server.kill()
    server.start()
    first.start()
    second.start()
    asyncio.run(fed(server.url, messages[half - 50 :]))
    for hub in hubs:
        until(hub.is_ready, "a ready hub")
        hub.holds(told)
    until(lambda: len(settled(first)) and settled(first) == settled(second), "one opinion")

    (incident,) = [one for one in settled(first).values() if one["verdict"] == "caused"]
    assert (incident["node"], incident["causes"][0]["port"]) == ("node005", "mlx5_3/1")
    assert incident["affected_gpus"] == 8 * NODES

    before = settled(first)
    first.kill()
    shutil.rmtree(first.history.parent)
    first.start()
    until(first.is_ready, "a hub that has lost everything")
    first.holds(told)
    until(lambda: settled(first) == before, "the same opinion as before")


def settled(hub: RunningHub) -> dict[str, Any]:
    """Empty until all of it is closed."""
    found = hub.incidents()
    return {} if any(one["open"] for one in found.values()) else found
