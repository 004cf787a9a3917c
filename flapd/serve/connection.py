"""Connections: what is accepted, how many, and how a broken request is answered."""

import asyncio
from collections.abc import Callable

from aiohttp import web

from flapd.serve.answers import error_answer
from flapd.serve.errors import STATUS, error_body

IDLE_SECONDS = 30.0
"""A client that has not sent a whole request head by then is cut off."""
_LINGERING_SECONDS = 2.0
_TOO_MANY = "too many connections; try again later"


class Connection(web.RequestHandler):
    """Answers what is not HTTP in the one form of errors, and without a trace in the log."""

    __slots__ = ()

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


class _Refusal(asyncio.Protocol):
    """Tells a client that there are too many, and closes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        body = error_body("too_many", _TOO_MANY)
        head = (
            f"HTTP/1.1 {STATUS['too_many'].value} Too Many Requests\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        transport.write(head.encode() + body)
        transport.close()


def accept(server: web.Server, most: int) -> Callable[[], asyncio.BaseProtocol]:
    """A protocol factory that refuses what goes beyond `most` connections at one time."""
    loop = asyncio.get_running_loop()

    def accepted() -> asyncio.BaseProtocol:
        if len(server.connections) >= most:
            return _Refusal()
        return Connection(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # as AppRunner's documentation has it
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=_LINGERING_SECONDS,
        )

    return accepted
