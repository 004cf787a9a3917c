"""Serving: a scrape, and a page of a long history."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from flapd.model.event import Outage
from flapd.store.history import History
from tests.bench.agent import pids, running_agent, started
from tests.bench.figure import Figure, Scale, percentile
from tests.bench.machine import memory_directory, usage_over, used_meanwhile
from tests.store.outages import WALL_NS, outage
from tests.system.harness import SimulatedNode, UnixConnection
from tests.trees import lay_out

_COMMIT_OF = 5_000
_EVERY_SECONDS = 30
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
        _write_history(node.history, scale.outages)
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


def _write_history(path: Path, outages: int) -> None:
    with closing(History(path)) as history:
        for first in range(0, outages, _COMMIT_OF):
            numbers = range(first, min(outages, first + _COMMIT_OF))
            history.commit([_outage(number) for number in numbers], {})


def _outage(number: int) -> Outage:
    """One in a thousand is rare in some way; 16 ports, one outage every 30 s."""
    port = number % 16
    down = number * _EVERY_SECONDS
    seconds = (0.02, 0.3, 1.5, 2.0, 7.0, 40.0, 300.0)[number % 7]
    rare = number % 1000
    return outage(
        f"flap-{number:016x}",
        down=down,
        up=None if rare == 1 else down + seconds,
        status={1: "open", 2: "lost"}.get(rare, "closed"),
        cause="subnet" if rare == 3 else "unknown" if rare == 4 else "link",
        layer="logical" if rare in (3, 4) else "physical",
        seen="while_away" if rare == 5 else ("observed", "unseen")[number % 2],
        kind="drop" if seconds > 240 else "flap",
        key=f"key{port}",
        port=f"mlx5_{port}/1",
        guid=f"0x{port:x}",
    )
