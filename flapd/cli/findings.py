"""Findings: what is wrong now, and what cannot be seen, by what an agent tells. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flapd.cli.answers import Fleet, Jobs, PortAnswer, PortsAnswer, Sampler, Status
from flapd.cli.text import clock_time
from flapd.sources.settings import OFF

AGENT = "agent"


class Finding(NamedTuple):
    about: str
    """A port, a device, or AGENT."""
    said: str


class Findings(NamedTuple):
    wrong: list[Finding]
    planned: list[Finding]
    """What would be wrong, were there no maintenance."""
    blind: list[Finding]
    """What cannot be seen, and why."""


def findings(listed: PortsAnswer, status: Status | None, reasons: Sequence[str]) -> Findings:
    """`reasons` are why the agent is not ready; `status` is None where it is not told."""
    ports = listed.items
    wrong = [Finding(AGENT, reason) for reason in reasons]
    wrong += [] if status is None else _of_agent(status)
    found = Findings(wrong, [], [*_blind_of_jobs(None if status is None else status.jobs)])
    if status is not None:
        failures = sorted(status.job_reader.failures.items())
        found.blind.extend(Finding(AGENT, f"{what}: {why}") for what, why in failures)
    missing, everywhere = missing_ports(ports), silent_everywhere(ports)
    found.blind.extend(Finding(AGENT, said) for said in everywhere if not _is_off(said))
    for port in ports:
        told = [Finding(port.port, said) for said in _of_port(port, port in missing)]
        (found.planned if port.maintenance else found.wrong).extend(told)
        found.blind.extend(
            Finding(port.port, said)
            for said in silent(port)
            if said not in everywhere and not _is_off(said)
        )
    can_tell = not reasons and not listed.blind
    if can_tell and (lacking := _never_seen(ports, expected(listed, status), len(missing))):
        is_planned = bool(ports) and all(port.maintenance for port in ports)
        (found.planned if is_planned else found.wrong).append(Finding(AGENT, lacking))
    return found


def expected(listed: PortsAnswer, status: Status | None) -> int | None:
    """How many ports the node should have; None = not told."""
    if listed.expected is None and status is not None:
        return status.ports.expected
    return listed.expected


def missing_ports(ports: Sequence[PortAnswer]) -> list[PortAnswer]:
    """Were up here once and are not found now; a card that was replaced left its name behind."""
    there = {port.port for port in ports if port.watched}
    return [port for port in ports if port.ever_up and not port.watched and port.port not in there]


def silent(port: PortAnswer) -> list[str]:
    """Sources that tell nothing of this port, and why."""
    return [f"{source}: {how}" for source, how in port.sources.items() if how != "on"]


def silent_everywhere(ports: Sequence[PortAnswer]) -> list[str]:
    """The same of all ports alike, where there are several."""
    told = [silent(port) for port in ports if port.watched]
    return [said for said in told[0] if all(said in one for one in told)] if len(told) > 1 else []


def _is_off(said: str) -> bool:
    """By choice: it is not missed."""
    return said.endswith(f": {OFF}")


def _of_agent(status: Status) -> Iterator[Finding]:
    if not status.config_ok:
        yield Finding(AGENT, "the configuration read last was refused; an older one is in force")
    if status.restart_needed:
        sections = ", ".join(status.restart_needed)
        yield Finding(AGENT, f"the configuration changed in what needs a restart: {sections}")
    if not status.history.durable:
        count = status.history.events_not_durable
        some = "some" if count is None else count
        yield Finding(AGENT, f"{some} events are in memory only: {status.history.path} takes none")
    if status.history.events_dropped:
        yield Finding(AGENT, f"{status.history.events_dropped} events are lost to the history")
    if status.observations_refused:
        yield Finding(AGENT, f"{status.observations_refused} observations were no use and refused")
    if status.fleet is not None:
        yield from _of_fleet(status.fleet)
    yield from _of_devices(status.sampler)
    yield from _of_incidents(status.jobs)


def _of_fleet(fleet: Fleet) -> Iterator[Finding]:
    if fleet.reason:
        yield Finding(AGENT, f"the fleet is not told: {fleet.reason}")
    if fleet.events_lost:
        yield Finding(AGENT, f"{fleet.events_lost} events were never told to the fleet")


def _of_incidents(jobs: Jobs | None) -> Iterator[Finding]:
    for one in (jobs and jobs.incidents) or ():
        if one.verdict not in _HURT_NOBODY:
            about = AGENT if one.job is None else f"job {one.job}"
            yield Finding(about, f"an incident goes on: see `flapd why {one.id}`")


_HURT_NOBODY = ("coincident", "not_fabric", "no_job")
"""By the fabric, as far as is known."""


def _blind_of_jobs(jobs: Jobs | None) -> Iterator[Finding]:
    if jobs is None:
        return
    yield from (Finding(AGENT, said) for said in jobs.blind_to)
    for job in jobs.running:
        yield from (Finding(f"job {job.job}", said) for said in job.blind_to)


def _of_devices(sampler: Sampler) -> Iterator[Finding]:
    for device, seconds in sampler.stuck.items():
        yield Finding(device, f"its reader waits in one read for {seconds:.0f} s")
    for device, times in sampler.slowed.items():
        if times > 1:
            yield Finding(device, f"its reads take long: it is read {times} times less often")
    for device, rings in sampler.rings_missing.items():
        if rings:
            yield Finding(device, f"{rings} of its rings could not be made: {_NOT_REMEMBERED}")


_NOT_REMEMBERED = (
    "samples are not remembered, neither for black boxes nor over a restart; make room in"
    " paths.ring and restart flapd"
)


def _never_seen(ports: Sequence[PortAnswer], should_be: int | None, missing: int) -> str | None:
    """Where nothing was ever up, nobody can tell what is down from what is not used."""
    lacking = (should_be or 0) - sum(port.watched for port in ports) - missing
    if lacking > 0:
        return f"{lacking} of {should_be} expected ports were never up here"
    if not ports:
        return "nothing is watched: there is no RDMA port, or none is to be watched"
    if not any(port.ever_up for port in ports):
        return f"nothing is watched: 0 of {len(ports)} ports found were ever up here"
    return None


def _of_port(port: PortAnswer, is_missing: bool) -> Iterator[str]:
    if is_missing:
        yield "missing: it was up here once and is not found now"
    if not port.watched:
        return
    if port.up is False:
        since = "" if port.last_down is None else f" since {clock_time(port.last_down.latest)}"
        yield f"down{since}"
    if not port.readable:
        yield "cannot be read: whether it is up is not known"
    if port.flapping:
        yield f"flapping: penalty {port.penalty or 0:.0f}, {_flaps(port)}"
    if port.downgraded:
        yield f"slow: {_rate(port.rate_gbps)} where {_rate(port.expected_rate_gbps)} are expected"
    if port.witness is not None and port.witness.status in _WITNESS:
        yield f"{port.witness.name} {_WITNESS[port.witness.status]}"


_SHORTER = "downs shorter than sampling.interval"
_WITNESS = {
    "saturated": f"stands at its stop: {_SHORTER} are missed until the port's error counters"
    " are cleared, as `perfquery -R LID PORT 0x0fff` does",
    "lying": f"did not count a down that was seen: {_SHORTER} may be missed",
    "unreadable": f"cannot be read: {_SHORTER} are not seen before it can be",
}


def _flaps(port: PortAnswer) -> str:
    if port.flaps_24h is None:
        return "flaps not known"
    return f"{port.flaps_24h} flaps in 24 h"


def _rate(rate_gbps: float | None) -> str:
    return "not known" if rate_gbps is None else f"{rate_gbps:g} Gb/s"
