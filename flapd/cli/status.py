"""`flapd status`: one screen that says whether all is well, and what is not."""

import json
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from flapd.cli.answers import (
    Fleet,
    JobReader,
    Jobs,
    Planned,
    PortAnswer,
    PortsAnswer,
    RunningJob,
    Status,
)
from flapd.cli.findings import Finding, Findings, expected
from flapd.cli.fleet_status import fleet_of, fleet_status
from flapd.cli.look import look
from flapd.cli.output import print_json, print_line
from flapd.cli.target import Target
from flapd.cli.text import clock_time, length, size

_MOST_LINES = 20
_NO_STATUS = "not told over the network; run `flapd status` on the node for all there is"


def status(targets: Sequence[Target], as_json: bool) -> int:
    """0 well, 1 something is wrong."""
    fleet = fleet_of(targets)
    if fleet is not None:
        return fleet_status(fleet, as_json)
    now = look(targets)
    if as_json:
        print_json(_as_json(now.body, now.found))
    else:
        _show(now.told, now.listed, now.found)
    return 1 if now.found.wrong else 0


def _as_json(body: bytes | None, found: Findings) -> bytes:
    """The agent's own status, and what follows from it."""
    lists = zip(found._fields, found, strict=True)
    follows = {name: [finding._asdict() for finding in told] for name, told in lists}
    status = {} if body is None else json.loads(body)
    return msgspec.json.encode({**status, "well": not found.wrong, **follows})


def _show(told: Status | None, listed: PortsAnswer, found: Findings) -> None:
    print_line(headline(told, found), "bold red" if found.wrong else "bold green")
    for name, said in _facts(told, listed):
        print_line(f"  {name:<11} {said}", indent=14)
    _list("wrong now", found.wrong, "red")
    _list("expected, as it is planned", found.planned, "yellow")
    _list("cannot be seen", found.blind, "yellow")


def headline(told: Status | None, found: Findings) -> str:
    wrong = len(found.wrong)
    node = "" if told is None else f"{told.node}: "
    things = "1 thing is wrong" if wrong == 1 else f"{wrong} things are wrong"
    return node + (things if wrong else "all is well")


def _facts(told: Status | None, listed: PortsAnswer) -> Iterator[tuple[str, str]]:
    if told is None:
        yield "agent", _NO_STATUS
    else:
        yield from _agent_facts(told)
    yield "ports", ports_counted(told, listed)
    unwatched = [port.port for port in listed.items if not port.ever_up]
    if unwatched:
        yield "not watched", f"never up here: {', '.join(unwatched)}"


def ports_counted(told: Status | None, listed: PortsAnswer) -> str:
    ports, should_be = listed.items, expected(listed, told)
    watched = [port for port in ports if port.watched]
    up = sum(port.up is True for port in watched)
    of_all = "" if should_be is None else f" of {should_be} expected"
    first = "" if listed.next is None else f"of the first {len(ports)} "
    return f"{first}{len(watched)}{of_all} watched, {up} up, {_flaps(ports)}"


def _agent_facts(told: Status) -> Iterator[tuple[str, str]]:
    restarts = told.sampler.restarts
    again = f", sampler restarted {restarts} times" if restarts else ""
    yield "agent", f"flapd {told.version}, up {length(told.uptime_seconds)}{again}"
    history = told.history
    written = "all of it on disk" if history.durable else "NOT ALL OF IT ON DISK"
    bytes_told = "size not known" if history.bytes is None else size(history.bytes)
    yield "history", f"{history.path}, {bytes_told}, {written}"
    if told.fleet is not None:
        yield "fleet", _fleet(told.fleet)
    if told.sources:
        yield "sources", _sources(told.sources)
    if told.recording is not None and told.recording.until is not None:
        yield "recording", f"until {clock_time(told.recording.until)}"
    if told.jobs is not None:
        yield "jobs", "; ".join(map(job_words, told.jobs.running)) or "none is seen here"
        yield "incidents", _incidents(told.jobs)
        yield "logs", _logs(told.job_reader)
    for work in told.maintenance:
        yield "maintenance", _planned(work)


def _fleet(fleet: Fleet) -> str:
    where = f"connected to {fleet.server}" if fleet.connected else "NOT CONNECTED"
    return f"{where}, {fleet.outbox_events} events to be told"


def _sources(told: Mapping[str, bool]) -> str:
    silent = [name for name, works in told.items() if not works]
    working = ", ".join(name for name, works in told.items() if works) or "none works"
    return f"{working}; not {', '.join(silent)} (see `flapd ports`)" if silent else working


def job_words(job: RunningJob) -> str:
    size = "of unknown size" if job.world_size is None else f"{job.world_size:,} ranks"
    here = "" if job.local_ranks is None else f", {job.local_ranks} of them here"
    still = ", ITS TRAFFIC STANDS STILL" if job.stands_still else ""
    return f"{job.job} ({job.kind or 'kind not known'}, {size}{here}{still})"


def _incidents(jobs: Jobs) -> str:
    if jobs.incidents is None:
        return "not known, as the history cannot be read"
    told = ", ".join(f"{one.id} ({one.verdict.replace('_', ' ')})" for one in jobs.incidents)
    return f"{len(jobs.incidents)} go on: {told}" if told else "none goes on"


def _logs(reader: JobReader) -> str:
    behind = f", {size(reader.behind_bytes)} behind" if reader.behind_bytes else ""
    again = f", reader restarted {reader.restarts} times" if reader.restarts else ""
    return f"{reader.files} followed{behind}{again}"


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
