"""Answers: every response there is, errors in the one form of the contract."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import Any, TypeVar

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from multidict import CIMultiDict

from flapd.model.errors import FlapdError
from flapd.serve.errors import STATUS, ApiError, Code, error_body
from flapd.serve.items import FlapList, PortList

_T = TypeVar("_T")
_log = structlog.get_logger()
_IN_THE_LOG = "this cannot be answered now; the agent's log says why"
_ENCODER = msgspec.json.Encoder()


async def in_thread(executor: Executor, work: Callable[..., _T], *arguments: Any) -> _T:
    """What may wait for a disk is done beside the loop."""
    return await asyncio.get_running_loop().run_in_executor(executor, work, *arguments)


def json_answer(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


def encoded(answer: Any) -> bytes:
    return _ENCODER.encode(answer)


def encoded_list(page: FlapList | PortList) -> bytes:
    """An item at a time: no single call holds the GIL for long."""
    return b"".join(_pieces(page))


def _pieces(page: FlapList | PortList) -> Iterator[bytes]:
    yield b'{"items":['
    separator = b""
    for item in page.items:
        yield separator
        yield _ENCODER.encode(item)
        separator = b","
    yield b'],"next":'
    yield _ENCODER.encode(page.next)
    yield b"}"


def error_answer(code: Code, message: str, parameter: str | None = None) -> web.Response:
    return json_answer(error_body(code, message, parameter), STATUS[code])


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """No error leaves in another form, and no trace leaves at all."""
    try:
        return await handler(request)
    except ApiError as error:
        return error_answer(error.code, str(error), error.parameter)
    except web.HTTPNotFound:
        return error_answer("not_found", "there is nothing at this path")
    except web.HTTPMethodNotAllowed as error:
        return _wrong_method(error)
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


def _wrong_method(error: web.HTTPMethodNotAllowed) -> web.Response:
    allowed = ", ".join(sorted(error.allowed_methods))
    answer = error_answer("method_not_allowed", f"{error.method} is not allowed here: {allowed}")
    answer.headers.update(CIMultiDict({"Allow": allowed}))
    return answer
