"""Questions to a hub, by a real server over TCP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from flapd.serve.hub.routes import hub_app
from flapd.serve.server import Server
from flapd.serve.settings import HttpSettings, Prices
from tests.serve.hub.fake_hub import FakeHub


@asynccontextmanager
async def asking(hub: FakeHub, *, sees_jobs: bool = True) -> AsyncIterator[aiohttp.ClientSession]:
    directory = hub.about.history.parent
    settings = HttpSettings("127.0.0.1:0", open=sees_jobs)
    server = Server(hub_app(hub, 1, Prices()), settings, directory / "hub.sock")
    await server.start()
    try:
        assert server.tcp_address is not None
        host, number = server.tcp_address
        async with aiohttp.ClientSession(f"http://{host}:{number}") as session:
            yield session
    finally:
        await server.stop()


async def got(session: aiohttp.ClientSession, path: str) -> Any:
    async with session.get(path) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()
