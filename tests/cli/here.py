"""A node for commands to run on: a configuration, and a real server on its socket."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from flapd.cli.main import main
from flapd.core.fabric.view import PortView, Snapshot
from flapd.model.event import Outage
from flapd.model.times import SECOND_NS, Edge
from tests.serve.parts import FakeAgent, serving
from tests.store.outages import outage, with_length

WIDEST = 100


class Here:
    """A node whose configuration names this directory's socket and a free TCP port."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config = directory / "flapd.toml"
        self.config.write_text(
            f'paths.socket = "{directory}/flapd.sock"\npaths.sysfs = "{directory}/sys"\n'
            'http.listen = ""\n'
        )

    def command(self, *words: str) -> int:
        return main([*words, "--config", str(self.config)])


@contextmanager
def agent_at(
    here: Here,
    outages: tuple[Outage, ...] = (),
    ports: tuple[PortView, ...] = (),
    **http: Any,
) -> Iterator[tuple[FakeAgent, str]]:
    """A served agent on another thread, and its URL; `http` are settings of its server."""
    agent = FakeAgent(here.directory, outages)
    agent.shown = Snapshot(ports=ports, is_scouted=True)
    started: Future[str] = Future()
    ended = threading.Event()

    async def serve() -> None:
        async with serving(agent, here.directory, **http) as server:
            assert server.tcp_address is not None
            scheme = "https" if http.get("tls_cert") else "http"
            started.set_result(f"{scheme}://127.0.0.1:{server.tcp_address[1]}")
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield agent, started.result(10)
    finally:
        ended.set()
        thread.join()


def recent(flap_id: str = "f1", ago_seconds: int = 60, **changes: Any) -> Outage:
    """An outage that ended a minute ago, with edges of 100 and 200 ms."""
    now_ns = time.monotonic_ns()
    began_ns = now_ns - ago_seconds * SECOND_NS
    wall_ns = time.time_ns() - now_ns
    down = Edge(began_ns, began_ns + SECOND_NS // 10, wall_ns)
    up = Edge(began_ns + SECOND_NS // 2, began_ns + SECOND_NS // 10 * 7, wall_ns)
    return with_length(replace(outage(flap_id), **{"down": down, "up": up, **changes}))
