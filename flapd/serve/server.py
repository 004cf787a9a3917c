"""Server: the agent on the network and on its Unix socket."""

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import structlog
from aiohttp import web

from flapd.serve.agent import Agent
from flapd.serve.answers import errors_as_json
from flapd.serve.api import Api
from flapd.serve.connection import accept
from flapd.serve.recording import RecordingApi
from flapd.serve.settings import HttpSettings, parse_listen
from flapd.serve.sockets import tcp_socket, unix_socket

MOST_TCP_CONNECTIONS = 256
MOST_LOCAL_CONNECTIONS = 256

_THREADS = 4
_SHUTDOWN_SECONDS = 0.5
"""aiohttp waits this long twice."""

_log = structlog.get_logger()


def build_app(agent: Agent, executor: Executor, *, local: bool) -> web.Application:
    """The routes; those that change something only where `local`."""
    app = web.Application(middlewares=[errors_as_json])
    app.add_routes(Api(agent, executor).routes())
    if local:
        app.add_routes(RecordingApi(agent, executor).routes())
    return app


class Server:
    """Serves from start() to stop(); both are called once, on one loop."""

    def __init__(self, agent: Agent, settings: HttpSettings, socket_path: Path) -> None:
        self._agent = agent
        self._listen = parse_listen(settings.listen)
        self._socket_path = socket_path
        self._executor = ThreadPoolExecutor(_THREADS, "serve")
        self._listeners: list[asyncio.AbstractServer] = []
        self._runners: list[web.AppRunner] = []
        self.tcp_address: tuple[str, int] | None = None
        """Where it listens on TCP, once started."""

    async def start(self) -> None:
        """FlapdError where a socket cannot be had; then nothing is left behind."""
        try:
            await self._start_local()
            if self._listen is not None:
                await self._start_tcp(*self._listen)
        except BaseException:
            await self.stop()
            raise

    async def _start_local(self) -> None:
        bound = unix_socket(self._socket_path)
        server = await self._run(local=True)
        loop = asyncio.get_running_loop()
        factory = accept(server, MOST_LOCAL_CONNECTIONS)
        self._listeners.append(await loop.create_unix_server(factory, sock=bound))
        _log.info("listening", socket=str(self._socket_path))

    async def _start_tcp(self, host: str, port: int) -> None:
        bound = tcp_socket(host, port)
        self.tcp_address = bound.getsockname()[:2]
        server = await self._run(local=False)
        loop = asyncio.get_running_loop()
        factory = accept(server, MOST_TCP_CONNECTIONS)
        self._listeners.append(await loop.create_server(factory, sock=bound))
        _log.info("listening", host=host, port=bound.getsockname()[1])

    async def _run(self, *, local: bool) -> web.Server:
        runner = web.AppRunner(
            build_app(self._agent, self._executor, local=local),
            shutdown_timeout=_SHUTDOWN_SECONDS,
        )
        await runner.setup()
        self._runners.append(runner)
        assert runner.server is not None
        return runner.server

    async def stop(self) -> None:
        """Within two seconds, whatever clients do."""
        for listener in self._listeners:
            listener.close()
        await asyncio.gather(*(runner.cleanup() for runner in self._runners))
        if self._runners:
            self._socket_path.unlink(missing_ok=True)
        self._executor.shutdown(wait=False, cancel_futures=True)
