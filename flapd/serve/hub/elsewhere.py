"""Elsewhere: what an agent answers and a hub has not, and where it is answered."""

from collections.abc import Iterator

from aiohttp import web
from aiohttp.typedefs import Handler

from flapd.serve.errors import ApiError
from flapd.serve.items import RECORDING_PATH
from flapd.serve.settings import DEFAULT_PORT

_PORT = "/api/v1/ports/{device}/{number}"
_ONE_PORT = (
    "many nodes have a port {device}/{number}: /api/v1/nodes/NODE/ports/{device}/{number} is of one"
)
_SAMPLES = (
    "samples stay with their node, whose agent tells them: "
    f"http://{{node}}:{DEFAULT_PORT}/api/v1/ports/{{device}}/{{number}}/samples"
)
_STATUS = (
    "a hub tells of itself and of all nodes at /api/v1/fleet, of one at /api/v1/nodes/NODE; "
    "its agent says more there: `flapd status` on the node"
)
_ON_THE_NODE = "a hub changes nothing on a node: run `flapd {command}` there"

_ELSEWHERE = {
    _PORT: _ONE_PORT,
    f"{_PORT}/samples": _SAMPLES,
    "/api/v1/nodes/{node}/ports/{device}/{number}/samples": _SAMPLES,
    "/api/v1/status": _STATUS,
    "/api/v1/maintenance": _ON_THE_NODE.format(command="maintenance"),
    "/api/v1/repaired": _ON_THE_NODE.format(command="repaired"),
    RECORDING_PATH: "a hub records no node: run `flapd record` there",
}
"""Path -> sentence, with the names of the path."""


def elsewhere() -> Iterator[web.RouteDef]:
    """Whatever is asked there is `not_found`, with the sentence; no answer, so not in OpenAPI."""
    for path, sentence in _ELSEWHERE.items():
        yield web.route("*", path, _refusing(sentence))


def _refusing(sentence: str) -> Handler:
    async def refuse(request: web.Request) -> web.StreamResponse:
        names = {"node": "NODE", **request.match_info}
        raise ApiError("not_found", sentence.format_map(names))

    return refuse
