"""Concerns: what is wrong now, and what flapd cannot see, in the words of `flapd status`."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from flapd.serve.items import PortItem
from flapd.serve.page.html import Child, element
from flapd.serve.page.words import NOT_KNOWN, incident_link, minute, port_link
from flapd.serve.status import JobsStatus, PortsSummary, Status

_NOT_MISSED = ("on", "off by configuration")
_HURT_NOBODY = ("coincident", "not_fabric", "no_job")
_SHORTER = "downs shorter than sampling.interval"
_WITNESS = {
    "saturated": f"stands at its stop: {_SHORTER} are missed until its counters are cleared",
    "lying": f"did not count a down that was seen: {_SHORTER} may be missed",
    "unreadable": f"cannot be read: {_SHORTER} are not seen before it can be",
}


class Concern(msgspec.Struct, frozen=True):
    about: Child
    said: Child


class Concerns(msgspec.Struct, frozen=True):
    wrong: list[Concern]
    planned: list[Concern]
    """What would be wrong, were there no maintenance."""
    blind: list[Concern]
    """What cannot be seen, and why."""


def concerns(status: Status, ports: Sequence[PortItem], sees_jobs: bool) -> Concerns:
    wrong = [Concern("agent", said) for said in _of_agent(status)]
    wrong += _of_devices(status)
    found = Concerns(wrong, [], [])
    if sees_jobs:
        found.wrong.extend(_of_incidents(status.jobs))
        found.blind.extend(_blind_of_jobs(status.jobs))
    named = {port.port for port in ports if port.watched}
    everywhere = _everywhere(ports)
    found.blind.extend(Concern("all ports", said) for said in everywhere)
    for port in ports:
        is_missing = port.ever_up and not port.watched and port.port not in named
        told = [Concern(port_link(port.port), said) for said in _of_port(port, is_missing)]
        (found.planned if port.maintenance else found.wrong).extend(told)
        unseen = (said for said in _unseen(port) if said not in everywhere)
        found.blind.extend(Concern(port_link(port.port), said) for said in unseen)
    if status.ready:
        found.wrong.extend(Concern("agent", said) for said in _lacking(status.ports, ports))
    return found


def _of_agent(status: Status) -> Iterator[str]:
    yield from status.reasons
    if not status.config_ok:
        yield "the configuration read last was refused; an older one is in force"
    if status.restart_needed:
        sections = ", ".join(status.restart_needed)
        yield f"the configuration changed in what needs a restart: {sections}"
    if not status.history.durable:
        yield f"{status.history.events_not_durable} events are in memory only: the disk takes none"
    if status.history.events_dropped:
        yield f"{status.history.events_dropped} events are lost to the history"


def _of_devices(status: Status) -> Iterator[Concern]:
    for device, seconds in status.sampler.stuck.items():
        yield Concern(device, f"its reader waits in one read for {seconds:.0f} s")
    for device, times in status.sampler.slowed.items():
        if times > 1:
            yield Concern(device, f"its reads take long: it is read {times} times less often")
    for device, rings in status.sampler.rings_missing.items():
        if rings:
            yield Concern(device, f"{rings} of its rings could not be made: no black boxes of it")


def _of_incidents(jobs: JobsStatus) -> Iterator[Concern]:
    for one in jobs.incidents or ():
        if one.verdict not in _HURT_NOBODY:
            about = "agent" if one.job is None else f"job {one.job}"
            yield Concern(about, ["an incident goes on: ", incident_link(one.id, one.id)])
    for job in jobs.running:
        if job.stands_still:
            yield Concern(f"job {job.job}", "its traffic stands still")


def _blind_of_jobs(jobs: JobsStatus) -> Iterator[Concern]:
    yield from (Concern("jobs", said) for said in jobs.blind_to)
    for job in jobs.running:
        yield from (Concern(f"job {job.job}", said) for said in job.blind_to)


def _unseen(port: PortItem) -> list[str]:
    """Sources that tell nothing of this port, and why; what is off by choice is not missed."""
    if not port.watched:
        return []
    return [f"{source}: {how}" for source, how in port.sources.items() if how not in _NOT_MISSED]


def _everywhere(ports: Iterable[PortItem]) -> list[str]:
    """The same of all ports alike, where there are several."""
    told = [_unseen(port) for port in ports if port.watched]
    return [said for said in told[0] if all(said in one for one in told)] if len(told) > 1 else []


def _of_port(port: PortItem, is_missing: bool) -> Iterator[Child]:
    if is_missing:
        yield "missing: it was up here once and is not found now"
    if not port.watched:
        return
    if port.up is False:
        since = port.last_down
        yield "down" if since is None else ["down since ", minute(since.latest), " UTC"]
    if not port.readable:
        yield "cannot be read: whether it is up is not known"
    if port.flapping:
        flaps = NOT_KNOWN if port.flaps_24h is None else f"{port.flaps_24h}"
        yield f"flapping: penalty {port.penalty or 0:.0f}, flaps in 24 h: {flaps}"
    if port.downgraded:
        yield f"slow: {rate(port.rate_gbps)} where {rate(port.expected_rate_gbps)} are expected"
    if port.bit_error_level != "good":
        yield f"bit errors: {port.bit_error_level}"
    if port.witness.status in _WITNESS:
        yield [element("code", port.witness.name), " ", _WITNESS[port.witness.status]]


def rate(rate_gbps: float | None) -> str:
    return NOT_KNOWN if rate_gbps is None else f"{rate_gbps:g} Gb/s"


def _lacking(told: PortsSummary, ports: Sequence[PortItem]) -> Iterator[str]:
    missing = sum(port.ever_up and not port.watched for port in ports)
    lacking = told.expected - told.watched - missing
    if lacking > 0:
        yield f"{lacking} of {told.expected} expected ports were never up here"
    elif not told.watched and not missing:
        yield "nothing is watched: no RDMA port was ever up here, or none is to be watched"
