"""Connections: what is accepted, how many, and how a broken request is answered."""

import asyncio
from collections import deque

from aiohttp import web

from flapd.serve.answers import WRITE_SECONDS, error_answer, told_by_aiohttp
from flapd.serve.errors import STATUS, error_body

IDLE_SECONDS = 30.0
"""A client that has not sent a whole request head by then is cut off."""
HANDSHAKE_SECONDS = 10.0
_LINGERING_SECONDS = 2.0
_REFUSAL_SECONDS = 1.0
_MOST_REFUSALS = 64
"""That are told at one time; more are cut off without a word."""
_TOO_MANY = "too many connections; try again later"


class Connection(web.RequestHandler):
    """Answers what is not HTTP in the one form of errors, and without a trace in the log."""

    __slots__ = ("_reception",)

    def __init__(self, server: web.Server, reception: "Reception") -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # as AppRunner's documentation has it
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=_LINGERING_SECONDS,
        )
        self._reception = reception

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._reception.arrived()
        super().connection_made(transport)

    async def finish_response(
        self,
        request: web.BaseRequest,
        resp: web.StreamResponse,
        start_time: float | None,
    ) -> tuple[web.StreamResponse, bool]:
        """What aiohttp refused before any handler gets our form; a slow client is cut off."""
        if isinstance(resp, web.HTTPException):
            resp = told_by_aiohttp(resp)
        too_slow = self._loop.call_later(WRITE_SECONDS, self._abort)
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            too_slow.cancel()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,  # noqa: ARG002 - aiohttp's signature
        message: str | None = None,  # noqa: ARG002
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("half an answer cannot become an error")
        if status == STATUS["bad_parameter"]:
            answer = error_answer("bad_parameter", "this is not a request of HTTP")
        else:
            answer = error_answer("unavailable", "this cannot be answered now")
        answer.force_close()
        return answer

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class _Refusal(asyncio.Protocol):
    """Tells a client that there are too many, and closes.

    It waits for the client's end: closed with something unread, the answer would be lost.
    """

    def __init__(self, reception: "Reception") -> None:
        self._reception = reception
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._reception.refusals += 1
        if self._reception.refusals > _MOST_REFUSALS:
            transport.abort()
            return
        transport.write(_refusal())
        if transport.can_write_eof():
            transport.write_eof()
        asyncio.get_running_loop().call_later(_REFUSAL_SECONDS, transport.abort)

    def data_received(self, _data: bytes) -> None:
        """What it asks does not matter."""

    def connection_lost(self, _error: Exception | None) -> None:
        self._reception.refusals -= 1


def _refusal() -> bytes:
    body = error_body("too_many", _TOO_MANY)
    head = (
        f"HTTP/1.1 {STATUS['too_many'].value} Too Many Requests\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


class Reception:
    """A protocol factory that refuses what goes beyond `most` connections at one time."""

    def __init__(self, server: web.Server, most: int) -> None:
        self.refusals = 0
        self._server = server
        self._most = most
        self._on_their_way: deque[float] = deque()
        """When each was accepted that has not arrived yet, since TLS takes its time."""

    def __call__(self) -> asyncio.BaseProtocol:
        now = asyncio.get_running_loop().time()
        while self._on_their_way and now - self._on_their_way[0] > HANDSHAKE_SECONDS:
            self._on_their_way.popleft()
        if len(self._server.connections) + len(self._on_their_way) >= self._most:
            return _Refusal(self)
        self._on_their_way.append(now)
        return Connection(self._server, self)

    def arrived(self) -> None:
        if self._on_their_way:
            self._on_their_way.popleft()
