"""Serving: a scrape, and a page of a long history."""

import time
from collections.abc import Iterator

from tests.asking import UnixConnection
from tests.bench.agent import pids, running_agent, started
from tests.bench.figure import Figure, Scale, percentile
from tests.bench.history import write_history
from tests.bench.machine import memory_directory, usage_over, used_meanwhile
from tests.store.outages import WALL_NS
from tests.system.harness import SimulatedNode
from tests.trees import lay_out

_TIMES = 5
_FILTERS = (
    "",
    "min_down=100",
    "min_down=0.5&cause=subnet",
    "kind=drop",
    "status=lost",
    "status=open",
    "cause=subnet",
    "cause=unknown&layer=logical",
    "layer=logical",
    "seen=while_away",
    "seen=unseen&kind=drop",
    "port=mlx5_3/1",
    "port=mlx5_3/1&cause=unknown",
    "port=none/1",
    "guid=0x5",
    "guid=0x5&min_down=200",
)


def metrics(scale: Scale) -> list[Figure]:
    with memory_directory() as directory, running_agent(directory, scale.ports) as node:
        agent = pids(node)[:1]
        idle = usage_over(agent, max(1.0, scale.seconds / 3))
        with used_meanwhile(agent) as used:
            bytes_each = _scrape(node, scale.requests)
    cpu_seconds = used[0].cpu_seconds - idle.cpu_share * used[0].seconds
    return [
        Figure(
            what=f"/metrics, {scale.ports} ports: CPU",
            unit="ms",
            value=max(0.0, 1000 * cpu_seconds / scale.requests),
            budget=10,
            note=f"{bytes_each / 1000:.0f} kB",
        )
    ]


def _scrape(node: SimulatedNode, times: int) -> int:
    """Bytes of the last answer."""
    connection = UnixConnection(node.socket)
    size = 0
    for _ in range(times):
        connection.request("GET", "/metrics")
        size = len(connection.getresponse().read())
    connection.close()
    return size


def page_of_history(scale: Scale) -> list[Figure]:
    """Through HTTP, from the request to the last byte: the worst filter of all."""
    with memory_directory() as directory:
        node = SimulatedNode(directory)
        lay_out(node.sysfs, {"class/net/README": "nothing to watch"})
        write_history(node.history, scale.outages)
        with started(node):
            took_ms = {query: _page_ms(node, query) for query in _queries(node)}
    worst = max(took_ms, key=lambda query: took_ms[query])
    return [
        Figure(
            what=f"a page of {scale.outages:,} outages, any filter",
            unit="ms",
            value=took_ms[worst],
            budget=20,
            floor=f"no filter {took_ms['']:.1f} ms",
            note=f"worst: {worst or 'no filter'}",
        )
    ]


def _queries(node: SimulatedNode) -> Iterator[str]:
    """Every filter alone, within a span in the middle, and behind a page."""
    items = node.get("/api/v1/flaps?limit=1")["items"]
    newest = items[0]["down"]["earliest"]
    middle = WALL_NS // 1_000_000_000
    for query in _FILTERS:
        yield query
        yield f"{query}&until={newest}&since={middle}".lstrip("&")
        following = node.get(f"/api/v1/flaps?{query}")["next"]
        if following is not None:
            yield f"{query}&cursor={following}".lstrip("&")


def _page_ms(node: SimulatedNode, query: str) -> float:
    found = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        node.get_text(f"/api/v1/flaps?{query}")
        found.append(1000 * (time.perf_counter() - began))
    return percentile(found, 0.5)
