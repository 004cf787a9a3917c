"""Route: one question there is, as the server answers it and OpenAPI describes it."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from aiohttp import web

from flapd.serve.access import Gate
from flapd.serve.errors import ApiError
from flapd.serve.parameter import Parameter, bad, read_parameters

LARGEST_BODY_BYTES = 8 << 10
BODY_SECONDS = 10.0

Access = Literal["fabric", "jobs"]
"""Who may ask: `fabric` anybody, `jobs` who shows token or certificate, where reads are not open.

What changes something is on the Unix socket alone, where everybody may ask everything.
"""

_FIELD = re.compile(r"`\$\.(\w+)|field `([^`]+)`")


class Question(NamedTuple):
    request: web.Request
    values: Mapping[str, Any]
    """Every parameter of the route's query, as given or its default."""
    sees_jobs: bool
    """Fields that belong to tenants may be told."""
    body: Any = None


class Route(NamedTuple):
    method: Literal["GET", "POST", "DELETE"]
    path: str
    summary: str
    handler: Callable[[Question], Awaitable[web.StreamResponse]]
    answer: Any
    """Type of its JSON."""
    parameters: tuple[Parameter, ...] = ()
    body: Any = None
    """Type of the JSON it takes."""
    access: Access = "fabric"
    streams: tuple[str, ...] = ()
    """Content types other than JSON that it may answer with."""


def wired(route: Route, gate: Gate) -> web.RouteDef:
    """As aiohttp wants it; GET answers HEAD as well."""

    async def handle(request: web.Request) -> web.StreamResponse:
        sees_jobs = gate.admits(request)
        if route.access == "jobs" and not sees_jobs:
            raise gate.refusal()
        values = read_parameters(route.parameters, request.query.items(), time.time_ns())
        if not sees_jobs and _asks_for_jobs(route, values):
            raise gate.refusal()
        body = None if route.body is None else await _body(request, route.body)
        return await route.handler(Question(request, values, sees_jobs, body))

    return web.RouteDef(route.method, route.path, handle, {})


def _asks_for_jobs(route: Route, values: Mapping[str, Any]) -> bool:
    of_jobs = (parameter.name for parameter in route.parameters if parameter.of_jobs)
    return any(values[name] is not None for name in of_jobs)


async def _body(request: web.Request, kind: Any) -> Any:
    """The JSON in the request as `kind`; ApiError that names the field that is wrong."""
    try:
        raw = await asyncio.wait_for(request.read(), BODY_SECONDS)
    except asyncio.TimeoutError:
        raise ApiError("bad_parameter", "the body did not arrive in time") from None
    except web.HTTPRequestEntityTooLarge:
        raise ApiError("bad_parameter", f"a body has at most {LARGEST_BODY_BYTES} bytes") from None
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error)) from None
    except msgspec.DecodeError:
        raise ApiError("bad_parameter", "the body is not JSON") from None


def _wrong_field(why: str) -> ApiError:
    found = _FIELD.search(why)
    if found is None:
        return ApiError("bad_parameter", f"the body: {why}")
    return bad(found[1] or found[2], why.partition(" - at ")[0])
