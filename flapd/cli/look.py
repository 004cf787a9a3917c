"""Look: what an agent tells of now, and what follows from it."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from flapd.cli.answers import PortsAnswer, Status
from flapd.cli.client import NotServedError, UnavailableError, ask
from flapd.cli.findings import Findings, findings
from flapd.cli.of_node import with_node
from flapd.cli.output import decoded
from flapd.cli.target import Target


class Now(NamedTuple):
    body: bytes | None
    """The agent's own status; None over the network, where it is not served."""
    told: Status | None
    """The same, decoded."""
    listed: PortsAnswer
    found: Findings


def look(targets: Sequence[Target], *, of_many: bool = False) -> Now:
    """Raises as `ask` does. `of_many`: a hub answers, and ports are named with their nodes."""
    body = _status(targets)
    told = None if body is None else decoded(body, Status)
    listed = decoded(ask(targets, "/api/v1/ports?limit=1000"), PortsAnswer)
    if of_many:
        listed = replace(listed, items=[with_node(port) for port in listed.items])
    return Now(body, told, listed, findings(listed, told, _reasons(targets)))


def _status(targets: Sequence[Target]) -> bytes | None:
    try:
        return ask(targets, "/api/v1/status")
    except NotServedError:
        return None


def _reasons(targets: Sequence[Target]) -> list[str]:
    try:
        ask(targets, "/readyz")
    except UnavailableError as error:
        return [str(error)]
    return []
