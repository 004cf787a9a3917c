"""`flapd status` of a hub: is the fleet well, and is all of it seen."""

from collections.abc import Iterator, Sequence

import msgspec

from flapd.cli.client import NotServedError, ask
from flapd.cli.output import decoded, print_json, print_line
from flapd.cli.target import Target
from flapd.cli.text import length, size

_MOST_LINES = 20


class Ports(msgspec.Struct, frozen=True):
    watched: int = 0
    up: int = 0
    down: int = 0
    unknown: int = 0
    flapping: int = 0


class Node(msgspec.Struct, frozen=True):
    node: str
    health: str = "unknown"
    reasons: list[str] = []


class Nodes(msgspec.Struct, frozen=True):
    known: int = 0
    healthy: int = 0
    unhealthy: int = 0
    unknown: int = 0


class Stream(msgspec.Struct, frozen=True):
    connected: bool = False
    server: str | None = None
    reason: str | None = None
    waiting: int | None = None
    missed: int = 0
    refused: int = 0
    lag_seconds: float | None = None


class Fleet(msgspec.Struct, frozen=True):
    """The answer of /fleet."""

    cluster: str
    version: str
    hub: str
    nodes: Nodes
    ports: Ports
    stream: Stream
    reasons: list[str] = []
    wrong: list[Node] = []
    history_bytes: int | None = None
    history_durable: bool = True
    incidents_open: int | None = None


def fleet_of(targets: Sequence[Target]) -> bytes | None:
    """None: it is no hub that answers."""
    try:
        return ask(targets, "/api/v1/fleet")
    except NotServedError:
        return None


def fleet_status(body: bytes, as_json: bool) -> int:
    """0 well, 1 something is wrong; a node that is silent is nothing that is well."""
    told = decoded(body, Fleet)
    if as_json:
        print_json(body)
    else:
        _show(told)
    return 1 if told.wrong or told.reasons else 0


def _show(told: Fleet) -> None:
    style = "bold red" if told.wrong or told.reasons else "bold green"
    print_line(_headline(told), style)
    for name, said in _facts(told):
        print_line(f"  {name:<11} {said}", indent=14)
    if told.reasons or told.wrong:
        print_line("wrong now:", "red")
    for reason in told.reasons:
        print_line(f"  {'hub':<16} {reason}", indent=19)
    for node in told.wrong[:_MOST_LINES]:
        print_line(f"  {node.node:<16} {node.health}: {' '.join(node.reasons)}", indent=19)
    more = told.nodes.known - told.nodes.healthy - _MOST_LINES
    if more > 0:
        print_line(f"  and {more} more nodes: /api/v1/nodes has all")


def _headline(told: Fleet) -> str:
    nodes = told.nodes
    if told.reasons:
        return f"fleet {told.cluster}: not all of it is known"
    if told.wrong:
        return f"fleet {told.cluster}: {nodes.unhealthy} nodes unhealthy, {nodes.unknown} silent"
    return f"fleet {told.cluster}: all is well"


def _facts(told: Fleet) -> Iterator[tuple[str, str]]:
    nodes, ports = told.nodes, told.ports
    yield "hub", f"{told.hub}, flapd {told.version}"
    yield "stream", _stream(told.stream)
    written = "all of it on disk" if told.history_durable else "NOT ALL OF IT ON DISK"
    kept = "size not known" if told.history_bytes is None else size(told.history_bytes)
    yield "history", f"{kept}, {written}"
    silent = f"{nodes.unknown} silent, of which nothing is known"
    yield "nodes", f"{nodes.healthy} of {nodes.known} healthy, {nodes.unhealthy} not, {silent}"
    yield "ports", f"{ports.up} of {ports.watched} up, {_not_up(ports)}"
    if told.incidents_open is not None:
        yield "incidents", f"{told.incidents_open} go on" if told.incidents_open else "none goes on"


def _not_up(ports: Ports) -> str:
    return f"{ports.down} down, {ports.unknown} not known, {ports.flapping} flapping"


def _stream(stream: Stream) -> str:
    if not stream.connected:
        return f"NOT CONNECTED: {stream.reason or 'not known why'}"
    lost = f", {stream.missed} messages were gone before they were read" if stream.missed else ""
    refused = f", {stream.refused} refused" if stream.refused else ""
    behind = ""
    if stream.waiting:
        since = "" if stream.lag_seconds is None else f", {length(stream.lag_seconds)} behind"
        behind = f", {stream.waiting} messages still to be taken{since}"
    return f"connected to {stream.server}{behind}{lost}{refused}"
