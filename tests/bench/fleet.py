"""Fleet: a hub that drains its stream, on one machine with the server and who feeds it."""

import asyncio
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager

import msgspec

from flapd.model.consuming import Position
from simulators.cluster.feeder import Feeder
from simulators.cluster.message import Message
from simulators.demo.site import nats_server
from tests.asking import UnixConnection
from tests.bench.figure import Figure, Scale, percentile
from tests.bench.fleet_events import burst, flap_of, heartbeating, steady
from tests.bench.machine import cpu_seconds, memory_directory, resident_bytes
from tests.fleet.nats_server import NatsServer, client, make_stream
from tests.system.harness import until
from tests.system.running_hub import RunningHub

_PATIENCE_SECONDS = 600.0
_LOOK_SECONDS = 0.05
_PAGE_EVERY_SECONDS = 0.2
_FLAP_EVERY_SECONDS = 2.5
"""Far enough apart that none has a cause in common with others."""


def fleet(scale: Scale) -> list[Figure]:
    if nats_server() is None:
        what = "events that a hub drains"
        return [Figure(what=what, unit="/s", value=None, budget=10_000, note="no nats-server here")]
    return [*drained(scale), *in_a_burst(scale), *in_time(scale)]


@contextmanager
def site() -> Iterator[tuple[NatsServer, RunningHub]]:
    """In memory, so that no figure is a disk's; the hub is not started."""
    with memory_directory() as directory:
        server = NatsServer(directory / "nats")
        server.start()
        hub = RunningHub(directory / "hub", [server.url])
        try:
            asyncio.run(_make_stream(server.url))
            yield server, hub
        finally:
            if hub.agent is not None:
                hub.kill()
            server.kill()


async def _make_stream(url: str) -> None:
    connection = await client(url)
    await make_stream(connection, max_bytes=2 << 30)
    await connection.close()


async def _fill(url: str, messages: Iterable[Message]) -> int:
    """How many the stream took."""
    connection = await client(url)
    feeder = Feeder(connection)
    await feeder.start()
    await feeder.feed(messages)
    await connection.close()
    return feeder.fed.stored


def drained(scale: Scale) -> list[Figure]:
    """All of them new; counted where they are on disk."""
    with site() as (server, hub):
        filled = asyncio.run(_fill(server.url, steady(16 * scale.nodes)))
        hub.start()
        until(lambda: _taken(hub) > 0, "the first of them", _PATIENCE_SECONDS)
        before, began = _taken(hub), time.monotonic()
        until(lambda: _taken(hub) >= filled, "all of them", _PATIENCE_SECONDS)
        seconds = time.monotonic() - began
        used = _used(hub)
    return [
        Figure(
            what=f"{filled:,} events drained by a hub: half outages, 3/10 faults, 2/10 stalls",
            unit="/s",
            value=(filled - before) / max(seconds, _LOOK_SECONDS),
            budget=10_000,
            at_least=True,
            note=used,
        )
    ]


def in_a_burst(scale: Scale) -> list[Figure]:
    """A switch dies under all nodes, and the stream has it all at once."""
    with site() as (server, hub):
        filled = asyncio.run(_fill(server.url, burst(scale.nodes)))
        hub.start()
        until(lambda: _shows(hub), "a page", _PATIENCE_SECONDS)
        began = time.monotonic()
        took = [_page_ms(hub)]
        while _taken(hub) < filled:
            assert time.monotonic() - began < _PATIENCE_SECONDS, "the burst is not drained"
            time.sleep(_PAGE_EVERY_SECONDS)
            took.append(_page_ms(hub))
        seconds = time.monotonic() - began
        until(lambda: _shared(hub), "the incident", _PATIENCE_SECONDS)
        stories, used = _shared(hub), _used(hub)
    what = f"a burst of {filled:,} events of {scale.nodes:,} nodes"
    return [
        Figure(
            what=f"{what}: the page meanwhile, p95",
            unit="ms",
            value=percentile(took, 0.95),
            budget=1000,
            note=f"drained in {seconds:.1f} s, none lost; {used}",
        ),
        Figure(
            what=f"{what}: incidents out of it",
            unit="",
            value=len(stories),
            budget=1,
            note=stories[0]["shared_cause"],
        ),
    ]


def in_time(scale: Scale) -> list[Figure]:
    """While all nodes send heartbeats: from a flap's publication to the incident that has it."""
    with site() as (server, hub):
        hub.start()
        until(hub.is_ready, "a ready hub")
        took = asyncio.run(_flaps(server.url, hub, scale))
        used = _used(hub)
    return [
        Figure(
            what=f"from a flap to its incident, {scale.nodes:,} nodes heartbeating, p99",
            unit="ms",
            value=1000 * percentile(took, 0.99),
            budget=2000,
            note=f"{len(took)} flaps; {used}",
        )
    ]


async def _flaps(url: str, hub: RunningHub, scale: Scale) -> list[float]:
    connection = await client(url)
    feeder = Feeder(connection)
    await feeder.start()
    quiet = heartbeating(scale.nodes)
    await feeder.feed(quiet.jobs)
    beating = asyncio.ensure_future(quiet.play(connection))
    await asyncio.to_thread(_until_taken, hub, feeder.fed.stored)
    await asyncio.sleep(_FLAP_EVERY_SECONDS)
    took = []
    for number in range(max(1, scale.requests // 5)):
        flap, message = flap_of(number, scale.nodes)
        sent = time.monotonic()
        await feeder.feed([message])
        await asyncio.to_thread(_until_told, hub, flap)
        took.append(time.monotonic() - sent)
        await asyncio.sleep(_FLAP_EVERY_SECONDS)
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    await connection.close()
    return took


def _until_taken(hub: RunningHub, messages: int) -> None:
    until(lambda: _taken(hub) >= messages, "all that was told before", _PATIENCE_SECONDS)


def _until_told(hub: RunningHub, flap: str) -> None:
    until(lambda: hub.get(f"/api/v1/flaps/{flap}").get("incidents"), "the incident", 60.0)


def _shared(hub: RunningHub) -> list[dict[str, str]]:
    return [one for one in hub.items("incidents") if one["shared_cause"]]


def _shows(hub: RunningHub) -> bool:
    try:
        return _page_ms(hub) > 0
    except OSError:
        return False


def _page_ms(hub: RunningHub) -> float:
    began = time.perf_counter()
    connection = UnixConnection(hub.socket, _PATIENCE_SECONDS)
    try:
        connection.request("GET", "/")
        assert connection.getresponse().read()
    finally:
        connection.close()
    return 1000 * (time.perf_counter() - began)


def _taken(hub: RunningHub) -> int:
    """Messages of the stream up to which its store has everything; 0 while there is none."""
    store = hub.history.parent / "hub.sqlite"
    asked = "SELECT body FROM checkpoint WHERE part = 'stream'"
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            row = connection.execute(asked).fetchone()
    except sqlite3.OperationalError:
        return 0
    return 0 if row is None else msgspec.json.decode(row[0], type=Position).seq


def _used(hub: RunningHub) -> str:
    """By the hub's process since its start, in words."""
    assert hub.agent is not None
    pid = hub.agent.pid
    return f"{cpu_seconds(pid):.1f} s of CPU, {resident_bytes(pid) / 1e6:.0f} MB resident"
