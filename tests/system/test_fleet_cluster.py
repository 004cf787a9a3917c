"""Three servers that lose their leader, agents that are killed, a network that is cut for minutes.

In the end a hub has what all nodes told, real ones and simulated ones, each thing once.
"""

import asyncio
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest
from nats.errors import Error as NatsError

from flapd.model.event import Event
from flapd.store.history_reader import HistoryReader
from simulators.cluster.feeder import Feeder
from simulators.cluster.message import Message, event_message
from simulators.errors import SimulatorError
from simulators.fabric.mount import fuse_missing
from simulators.fabric.schedule import Flap, random_flaps
from simulators.fabric.spec import two_ports
from tests.fleet.nats_server import client
from tests.system.cutter import cutter
from tests.system.harness import SimulatedNode, simulated_fabric, until
from tests.system.nats_cluster import NatsCluster
from tests.system.running_hub import RunningHub, union
from tests.system.test_fleet import some_fleet

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

CUT_SECONDS = 130.0
BEGIN_SECONDS = 20.0
FLAPS_A_PORT = 40
REAL = ("real1", "real2")
_ALL_SECONDS = 180.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[NatsCluster]:
    found = NatsCluster(tmp_path / "nats")
    found.start()
    asyncio.run(found.make_stream())
    yield found
    found.kill()


async def fed(urls: list[str], messages: list[Message]) -> None:
    """By whichever server answers; all again where it went away, since doubles are dropped."""
    for attempt in range(60):
        try:
            connection = await client(urls[attempt % len(urls)], connect_timeout=2)
        except (OSError, NatsError):
            continue
        try:
            feeder = Feeder(connection, window=200, patience_seconds=5.0)
            await feeder.start()
            await feeder.feed(messages)
        except (SimulatorError, NatsError):
            await asyncio.sleep(0.5)
        else:
            return
        finally:
            await connection.close()
    raise AssertionError("no server took them")


def real_agent(directory: Path, name: str, servers: list[str]) -> SimulatedNode:
    directory.mkdir()
    alone = "[jobs]\ndiscover = false\n[logs]\ndiscover = false"
    urls = ", ".join(f'"{url}"' for url in servers)
    node = SimulatedNode(
        directory, f"[flap]\nmerge_within = 0\n{alone}\n[fleet]\nservers = [{urls}]"
    )
    node.config.write_text(node.config.read_text().replace("node7", name))
    return node


def flaps_of(seed: int) -> tuple[Flap, ...]:
    return random_flaps(
        seed=seed,
        count=FLAPS_A_PORT,
        shortest_seconds=0.1,
        longest_seconds=0.8,
        begin_seconds=0.5,
        gap_seconds=3.0,
    )


def journal_of(node: SimulatedNode) -> list[Event]:
    with closing(HistoryReader(node.history)) as reader:
        return [event for _, event in reader.events_after(0, 100_000)]


def is_told(node: SimulatedNode) -> bool:
    fleet = node.get("/api/v1/status")["fleet"]
    return bool(fleet["connected"] and not fleet["reason"] and not fleet["outbox_events"])


def flaps_are_over(node: SimulatedNode, downs: int) -> bool:
    found = node.get("/api/v1/flaps?limit=1000")["items"]
    told = sum(one["count"] for one in found)
    return told == downs and all(one["status"] == "closed" for one in found)


def test_a_hub_has_all_that_real_and_simulated_nodes_told_whatever_breaks(
    tmp_path: Path, cluster: NatsCluster
) -> None:
    arrivals = list(some_fleet().events())
    messages = [event_message(one.event) for one in arrivals]
    with ExitStack() as stack:
        cut_off = stack.enter_context(cutter(port_of(cluster.urls[0])))
        cut, whole = (
            real_agent(tmp_path / name, name, servers)
            for name, servers in zip(REAL, ([cut_off.url], cluster.urls), strict=True)
        )
        hub = RunningHub(tmp_path / "hub", cluster.urls)
        truths = []
        for number, node in enumerate((cut, whole)):
            spec = two_ports(flaps_of(number), flaps_of(number + 10))
            truths.append(stack.enter_context(simulated_fabric(node, spec, BEGIN_SECONDS)))
            start(node, stack)
        start(hub, stack)

        cut_off.cut()
        cut_at = time.monotonic()
        asyncio.run(fed(cluster.urls, messages[: len(messages) // 2]))
        leader = asyncio.run(cluster.leader())
        cluster.servers[leader].kill()
        whole.kill()
        asyncio.run(fed(cluster.urls, messages))
        whole.start()
        cluster.servers[leader].start()
        hub.kill()
        hub.start()
        other = asyncio.run(cluster.leader())
        cluster.servers[other].kill()
        cluster.servers[other].start()
        until(lambda: time.monotonic() - cut_at > CUT_SECONDS, "the end of the cut", 300)
        assert cut.get("/api/v1/status")["fleet"]["outbox_events"] > 0
        cut_off.mend()
        for node, truth in zip((cut, whole), truths, strict=True):
            until(partial(flaps_are_over, node, len(truth.outages)), "its last flap", _ALL_SECONDS)
            until(partial(is_told, node), "all of it", _ALL_SECONDS)

        told = union([*(one.event.event for one in arrivals), *journal_of(cut), *journal_of(whole)])
        assert len(told["flaps"]) > 2 * FLAPS_A_PORT
        hub.holds(told, _ALL_SECONDS)
        hub.kill()
        shutil.rmtree(hub.history.parent)
        hub.start()
        until(hub.is_ready, "a hub that has lost everything")
        hub.holds(told, _ALL_SECONDS)


def start(process: SimulatedNode, stack: ExitStack) -> None:
    process.start()
    stack.callback(process.kill)
    until(process.is_ready, "readiness", BEGIN_SECONDS)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])
