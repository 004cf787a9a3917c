"""Whatever comes over HTTP: ports are read and flaps are counted as if nobody had come."""

import asyncio
import http.client
import json
import resource
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from flapd.model.event import Outage
from flapd.model.times import SECOND_NS
from flapd.store.ring import read_ring, ring_files
from simulators.fabric.mount import fuse_missing
from simulators.fabric.schedule import random_flaps
from simulators.fabric.spec import two_ports
from tests.system.harness import SimulatedNode, simulated_fabric, until
from tests.system.hostile_clients import ALL, Client, Outcome, silent

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

FLAPS_A_PORT = 12
ORIGIN_IN_SECONDS = 12.0
"""The agent is there by then, and under attack."""
CONNECTIONS = 1000
OF_EACH_KIND = 6
PATIENCE_SECONDS = 90
LONGEST_GAP_NS = SECOND_NS
MOST_RESIDENT_BYTES = 200 << 20


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """So that this side can have so many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedNode]:
    monkeypatch.setenv("FLAPD_HTTP__LISTEN", "127.0.0.1:0")
    node = SimulatedNode(tmp_path)
    yield node
    if node.agent is not None and node.agent.poll() is None:
        node.kill()


def tcp_port(node: SimulatedNode) -> int:
    """Which one the kernel chose, as the agent's log has it."""
    lines = map(json.loads, node.log.read_text().splitlines())
    listening = (line for line in lines if line["event"] == "listening" and "port" in line)
    return int(next(listening)["port"])


def answers(port: int) -> bool:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200


def process(node: SimulatedNode) -> Path:
    assert node.agent is not None
    return Path(f"/proc/{node.agent.pid}")


def sockets(node: SimulatedNode) -> int:
    """That the agent holds open; descriptors of the history come and go."""
    return sum(is_socket(link) for link in (process(node) / "fd").iterdir())


def is_socket(descriptor: Path) -> bool:
    try:
        return str(descriptor.readlink()).startswith("socket:")
    except FileNotFoundError:  # closed meanwhile
        return False


def most_resident_bytes(node: SimulatedNode) -> int:
    """Since it started (VmHWM, proc(5))."""
    status = (process(node) / "status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


async def attack(port: int) -> Counter[tuple[str, Outcome]]:
    """All at once; how each kind ended."""
    crowd: list[Client] = [*ALL * OF_EACH_KIND]
    crowd += [silent] * (CONNECTIONS - len(crowd))

    async def one(client: Client) -> tuple[str, Outcome]:
        try:
            outcome = await asyncio.wait_for(client("127.0.0.1", port), PATIENCE_SECONDS)
        except ConnectionError:
            outcome = "closed"
        except asyncio.TimeoutError:
            outcome = "neither"
        return client.__name__, outcome

    return Counter(await asyncio.gather(*map(one, crowd)))


def longest_gap_ns(node: SimulatedNode) -> int:
    """Between two fast readings of any port."""
    stamps = [
        [row.before_ns for row in ring.rows()]
        for path in ring_files(node.directory / "ring")
        if (ring := read_ring(path)).tier == "fast"
    ]
    return max(later - earlier for port in stamps for earlier, later in pairwise(port))


def downs(node: SimulatedNode) -> Counter[str]:
    with closing(sqlite3.connect(f"file:{node.history}?mode=ro", uri=True)) as connection:
        bodies = connection.execute("SELECT body FROM flaps").fetchall()
    outages = [msgspec.json.decode(body, type=Outage) for (body,) in bodies]
    return Counter(outage.port for outage in outages for _ in range(outage.count))


def test_hostile_clients_are_rid_of_and_nothing_is_missed_meanwhile(node: SimulatedNode) -> None:
    flaps = [
        random_flaps(
            seed=seed,
            count=FLAPS_A_PORT,
            shortest_seconds=0.02,
            longest_seconds=1.0,
            begin_seconds=0.5,
            gap_seconds=1.0,
        )
        for seed in (21, 22)
    ]
    with simulated_fabric(node, two_ports(*flaps), ORIGIN_IN_SECONDS) as truth:
        node.start()
        until(node.is_ready, "a ready agent")
        port, quiet = tcp_port(node), sockets(node)

        ended = asyncio.run(attack_while(node, port))

        until(lambda: sockets(node) <= quiet, "the end of the last connection")
        assert answers(port)
        until(lambda: downs(node).total() >= len(truth.outages), "the last flap")
        assert downs(node) == Counter(outage.port for outage in truth.outages)
        assert longest_gap_ns(node) <= LONGEST_GAP_NS
        assert most_resident_bytes(node) <= MOST_RESIDENT_BYTES
        assert node.terminate() < 5
    assert ended.total() == CONNECTIONS
    assert [kind for kind in ended if kind[1] == "neither"] == []
    for kind in ("half_closed", "pipelined"):
        assert ended[kind, "answered"]


async def attack_while(node: SimulatedNode, port: int) -> Counter[tuple[str, Outcome]]:
    """Under attack the socket of the node's own commands answers."""
    attacking = asyncio.create_task(attack(port))
    loop = asyncio.get_running_loop()
    while not attacking.done():
        assert await loop.run_in_executor(None, node.get_text, "/healthz")
        await asyncio.wait([attacking], timeout=0.5)
    return attacking.result()
