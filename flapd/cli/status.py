"""`flapd status`: one screen that says whether all is well, and what is not."""

import json
from collections.abc import Iterator, Sequence

import msgspec

from flapd.cli.answers import Planned, PortAnswer, PortsAnswer, Status
from flapd.cli.client import NotServedError, UnavailableError, ask
from flapd.cli.findings import Finding, Findings, expected, findings
from flapd.cli.output import decoded, print_json, print_line
from flapd.cli.target import Target
from flapd.cli.text import clock_time, length, size

_MOST_LINES = 20
_NO_STATUS = "not told over the network; run `flapd status` on the node for all there is"


def status(targets: Sequence[Target], as_json: bool) -> int:
    """0 well, 1 something is wrong."""
    body = _status(targets)
    told = None if body is None else decoded(body, Status)
    listed = decoded(ask(targets, "/api/v1/ports?limit=1000"), PortsAnswer)
    found = findings(listed, told, _reasons(targets))
    if as_json:
        print_json(_as_json(body, found))
    else:
        _show(told, listed, found)
    return 1 if found.wrong else 0


def _status(targets: Sequence[Target]) -> bytes | None:
    """None over the network, where it is not served."""
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


def _as_json(body: bytes | None, found: Findings) -> bytes:
    """The agent's own status, and what follows from it."""
    lists = zip(found._fields, found, strict=True)
    follows = {name: [finding._asdict() for finding in told] for name, told in lists}
    status = {} if body is None else json.loads(body)
    return msgspec.json.encode({**status, "well": not found.wrong, **follows})


def _show(told: Status | None, listed: PortsAnswer, found: Findings) -> None:
    wrong = len(found.wrong)
    node = "" if told is None else f"{told.node}: "
    things = "1 thing is wrong" if wrong == 1 else f"{wrong} things are wrong"
    print_line(node + (things if wrong else "all is well"), "bold red" if wrong else "bold green")
    for name, said in _facts(told, listed):
        print_line(f"  {name:<11} {said}", indent=14)
    _list("wrong now", found.wrong, "red")
    _list("expected, as it is planned", found.planned, "yellow")
    _list("cannot be seen", found.blind, "yellow")


def _facts(told: Status | None, listed: PortsAnswer) -> Iterator[tuple[str, str]]:
    if told is None:
        yield "agent", _NO_STATUS
    else:
        yield from _agent_facts(told)
    ports, should_be = listed.items, expected(listed, told)
    watched = [port for port in ports if port.watched]
    up = sum(port.up is True for port in watched)
    of_all = "" if should_be is None else f" of {should_be} expected"
    unwatched = [port.port for port in ports if not port.ever_up]
    yield "ports", f"{len(watched)}{of_all} watched, {up} up, {_flaps(ports)}"
    if unwatched:
        yield "not watched", f"never up here: {', '.join(unwatched)}"


def _agent_facts(told: Status) -> Iterator[tuple[str, str]]:
    restarts = told.sampler.restarts
    again = f", sampler restarted {restarts} times" if restarts else ""
    yield "agent", f"flapd {told.version}, up {length(told.uptime_seconds)}{again}"
    history = told.history
    written = "all of it on disk" if history.durable else "NOT ALL OF IT ON DISK"
    bytes_told = "size not known" if history.bytes is None else size(history.bytes)
    yield "history", f"{history.path}, {bytes_told}, {written}"
    working = [name for name, works in told.sources.items() if works]
    if told.sources:
        yield "sources", ", ".join(working) or "none works"
    if told.recording is not None and told.recording.until is not None:
        yield "recording", f"until {clock_time(told.recording.until)}"
    for work in told.maintenance:
        yield "maintenance", _planned(work)


def _planned(work: Planned) -> str:
    return f"{work.port or 'all ports'} until {clock_time(work.until)}: {work.reason}"


def _flaps(ports: Sequence[PortAnswer]) -> str:
    counts = [port.flaps_24h for port in ports]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return "flaps not known, as the history cannot be read"
    return f"{sum(known)} flaps in 24 h"


def _list(title: str, told: Sequence[Finding], style: str) -> None:
    if not told:
        return
    print_line(f"{title}:", style)
    for finding in told[:_MOST_LINES]:
        print_line(f"  {finding.about:<16} {finding.said}", indent=19)
    if len(told) > _MOST_LINES:
        print_line(f"  and {len(told) - _MOST_LINES} more: see `flapd ports`")
