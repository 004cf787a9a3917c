"""Server: the agent on the network and on its Unix socket."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import structlog
from aiohttp import web

from flapd.model.errors import FlapdError
from flapd.serve.access import Gate
from flapd.serve.agent import Agent
from flapd.serve.connection import HANDSHAKE_SECONDS, Reception
from flapd.serve.credentials import Certificates, credential_faults
from flapd.serve.routes import build_app
from flapd.serve.settings import USUAL_PRICES, CounterChoice, HttpSettings, Prices, parse_listen
from flapd.serve.sockets import tcp_socket, unix_socket

MOST_TCP_CONNECTIONS = 256
MOST_LOCAL_CONNECTIONS = 256
WAITING_CONNECTIONS = 2048
"""Until they are accepted, or refused: what the kernel drops instead is never told."""
RENEWAL_SECONDS = 5.0
"""How often the files of TLS are looked at."""

_THREADS = 4
_SHUTDOWN_SECONDS = 0.5
"""aiohttp waits this long twice."""

_log = structlog.get_logger()


BuildApp = Callable[[Executor, Gate, bool], web.Application]
"""With all that one listener answers; True: it is the Unix socket."""


def agent_app(
    agent: Agent, counters: CounterChoice = "errors", prices: Prices = USUAL_PRICES
) -> BuildApp:
    return lambda executor, gate, local: build_app(
        agent, executor, gate, counters, local=local, prices=prices
    )


class Server:
    """Serves from start() to stop(); both are called once, on one loop."""

    def __init__(self, build: BuildApp, settings: HttpSettings, socket_path: Path) -> None:
        self._build = build
        self._settings = settings
        self._listen = parse_listen(settings.listen)
        self._socket_path = socket_path
        self._executor: Executor = ThreadPoolExecutor(_THREADS, "serve")
        self._runners: list[web.AppRunner] = []
        self._local: asyncio.AbstractServer | None = None
        self._network: _NetworkListener | None = None
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
        reception = Reception(await self._run(local=True), MOST_LOCAL_CONNECTIONS)
        loop = asyncio.get_running_loop()
        self._local = await loop.create_unix_server(reception, sock=bound)
        _log.info("listening", socket=str(self._socket_path))

    async def _start_tcp(self, host: str, port: int) -> None:
        for fault in credential_faults(self._settings):
            raise FlapdError(str(fault))
        bound = tcp_socket(host, port)
        self.tcp_address = bound.getsockname()[:2]
        reception = Reception(await self._run(local=False), MOST_TCP_CONNECTIONS)
        self._network = _NetworkListener(bound, reception, Certificates(self._settings))
        await self._network.start()
        _log.info("listening", host=host, port=self.tcp_address[1])

    async def _run(self, *, local: bool) -> web.Server:
        gate = Gate(self._settings, local=local)
        runner = web.AppRunner(
            self._build(self._executor, gate, local), shutdown_timeout=_SHUTDOWN_SECONDS
        )
        await runner.setup()
        self._runners.append(runner)
        assert runner.server is not None
        return runner.server

    async def stop(self) -> None:
        """Within two seconds, whatever clients do."""
        if self._local is not None:
            self._local.close()
        if self._network is not None:
            await self._network.stop()
        await asyncio.gather(*(runner.cleanup() for runner in self._runners))
        if self._runners:
            self._socket_path.unlink(missing_ok=True)
        self._executor.shutdown(wait=False, cancel_futures=True)


class _NetworkListener:
    """Listens on one bound socket, with the TLS files as they are now."""

    def __init__(
        self, bound: socket.socket, reception: Reception, certificates: Certificates
    ) -> None:
        self._bound = bound
        self._reception = reception
        self._certificates = certificates
        self._server: asyncio.AbstractServer | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        context = self._certificates.context()
        await self._listen(context)
        if context is not None:
            self._renewing = asyncio.create_task(self._renew())

    async def stop(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._renewing
        if self._server is not None:
            self._server.close()
        self._bound.close()

    async def _listen(self, context: ssl.SSLContext | None) -> None:
        """On a descriptor of its own, so that the one before can be closed without a gap."""
        before = self._server
        self._server = await asyncio.get_running_loop().create_server(
            self._reception,
            sock=self._bound.dup(),
            backlog=WAITING_CONNECTIONS,
            ssl=context,
            ssl_handshake_timeout=None if context is None else HANDSHAKE_SECONDS,
        )
        if before is not None:
            before.close()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            context = self._certificates.renewed()
            if context is not None:
                await self._listen(context)
