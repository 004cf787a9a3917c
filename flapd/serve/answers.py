"""Answers: every response there is, errors in the one form of the contract."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

import msgspec
import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from flapd.model.errors import FlapdError
from flapd.serve.access import CHALLENGES
from flapd.serve.errors import STATUS, ApiError, Code, error_body

WRITE_SECONDS = 30.0
"""A client that takes a piece of its answer no faster than that is cut off."""

_T = TypeVar("_T")


class ItemList(Protocol):
    """A page of a list; fields beside `items` follow it."""

    @property
    def __struct_fields__(self) -> tuple[str, ...]: ...
    @property
    def items(self) -> Sequence[Any]: ...


_log = structlog.get_logger()
_IN_THE_LOG = "this cannot be answered now; the agent's log says why"
_ENCODER = msgspec.json.Encoder()
_VALUES_AT_ONCE = 4000
"""Numbers that are encoded in one call: some 0.1 ms, in which no other thread runs."""


async def in_thread(executor: Executor, work: Callable[..., _T], *arguments: Any) -> _T:
    """What may wait for a disk is done beside the loop."""
    return await asyncio.get_running_loop().run_in_executor(executor, work, *arguments)


def json_answer(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


def encoded(answer: Any) -> bytes:
    return _ENCODER.encode(answer)


def encoded_list(page: ItemList) -> bytes:
    """An item at a time: no single call holds the GIL for long."""
    body = b'{"items":[%b]}' % _joined(_ENCODER.encode(item) for item in page.items)
    for name in page.__struct_fields__:
        if name != "items":
            body = with_field(body, name, _ENCODER.encode(getattr(page, name)))
    return body


def encoded_table(columns: list[str], rows: list[list[Any]]) -> bytes:
    """As `encoded` would have it, some rows at a time."""
    step = max(1, _VALUES_AT_ONCE // max(1, len(columns)))
    parts = _joined(
        _ENCODER.encode(rows[start : start + step])[1:-1] for start in range(0, len(rows), step)
    )
    return b'{"columns":%b,"rows":[%b]}' % (_ENCODER.encode(columns), parts)


def with_field(json_object: bytes, name: str, value: bytes) -> bytes:
    """An encoded object that is not empty, with one more field at its end."""
    return b'%b,"%b":%b}' % (json_object[:-1], name.encode(), value)


def _joined(parts: Iterable[bytes]) -> bytes:
    return b",".join(parts)


async def written(request: web.Request, answer: web.StreamResponse, data: bytes) -> None:
    """Once the client has taken it, or most of it; ConnectionError where it takes too long."""
    try:
        await asyncio.wait_for(answer.write(data), WRITE_SECONDS)
    except asyncio.TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the client does not take its answer") from None


def error_answer(code: Code, message: str, parameter: str | None = None) -> web.Response:
    answer = json_answer(error_body(code, message, parameter), STATUS[code])
    if code == "unauthorized":
        for challenge in CHALLENGES:
            answer.headers.add(hdrs.WWW_AUTHENTICATE, challenge)
    return answer


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """No error leaves in another form, and no trace leaves at all."""
    try:
        return await handler(request)
    except ApiError as error:
        return error_answer(error.code, str(error), error.parameter)
    except web.HTTPException as error:
        return told_by_aiohttp(error)
    except ConnectionError:
        raise  # the client is gone
    except FlapdError as error:
        _log.error("request_refused", path=request.path, error=str(error))
        return error_answer("unavailable", _IN_THE_LOG)
    except Exception:
        _log.exception("request_failed", method=request.method, path=request.path)
        if request.writer.output_size > 0:
            raise  # half an answer cannot become an error
        return error_answer("unavailable", _IN_THE_LOG)


def told_by_aiohttp(error: web.HTTPException) -> web.Response:
    """What aiohttp refuses by itself, in the one form of errors."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        return _wrong_method(error)
    if isinstance(error, web.HTTPNotFound):
        return error_answer("not_found", "there is nothing at this path")
    return error_answer("bad_parameter", f"this is refused: {error.text or error.reason}")


def _wrong_method(error: web.HTTPMethodNotAllowed) -> web.Response:
    allowed = ", ".join(sorted(error.allowed_methods))
    answer = error_answer("method_not_allowed", f"{error.method} is not allowed here: {allowed}")
    answer.headers[hdrs.ALLOW] = allowed
    return answer
