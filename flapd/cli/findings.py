"""Findings: what is wrong now, and what cannot be seen, by what an agent tells. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flapd.cli.answers import Status
from flapd.cli.text import clock_time
from flapd.serve.items import PortItem

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


def findings(ports: Sequence[PortItem], status: Status | None, reasons: Sequence[str]) -> Findings:
    """`reasons` are why the agent is not ready; `status` is None where it is not told."""
    wrong = [Finding(AGENT, reason) for reason in reasons]
    wrong += [] if status is None else _of_agent(status)
    found = Findings(wrong, [], [])
    missing = missing_ports(ports)
    for port in ports:
        told = [Finding(port.port, said) for said in _of_port(port, port in missing)]
        (found.planned if port.maintenance else found.wrong).extend(told)
        found.blind.extend(Finding(port.port, said) for said in unseen(port))
    if status is not None and (lacking := _never_seen(status, len(missing))):
        found.wrong.append(Finding(AGENT, lacking))
    return found


def missing_ports(ports: Sequence[PortItem]) -> list[PortItem]:
    """Were up here once and are not found now; a card that was replaced left its name behind."""
    there = {port.port for port in ports if port.watched}
    return [port for port in ports if port.ever_up and not port.watched and port.port not in there]


def unseen(port: PortItem) -> list[str]:
    """Sources that tell nothing of this port, and why."""
    return [f"{source}: {how}" for source, how in port.sources.items() if how != "on"]


def _of_agent(status: Status) -> Iterator[Finding]:
    if not status.config_ok:
        yield Finding(AGENT, "the configuration read last was refused; an older one is in force")
    if not status.history.durable:
        count = status.history.events_not_durable
        yield Finding(AGENT, f"{count} events are in memory only: {status.history.path} takes none")
    for device, seconds in status.sampler.stuck.items():
        yield Finding(device, f"its reader waits in one read for {seconds:.0f} s")
    for device, times in status.sampler.slowed.items():
        if times > 1:
            yield Finding(device, f"its reads take long: it is read {times} times less often")
    if status.observations_refused:
        yield Finding(AGENT, f"{status.observations_refused} observations were no use and refused")


def _never_seen(status: Status, missing: int) -> str | None:
    lacking = status.ports.expected - status.ports.watched - missing
    if lacking <= 0:
        return None
    return f"{lacking} of {status.ports.expected} expected ports were never up here"


def _of_port(port: PortItem, is_missing: bool) -> Iterator[str]:
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
    if port.witness.status in _WITNESS:
        yield f"{port.witness.name} {_WITNESS[port.witness.status]}"


_WITNESS = {
    "saturated": "stands at its stop and counts no further: shorter downs may be missed",
    "lying": "did not count a down that was seen: shorter downs may be missed",
    "unreadable": "cannot be read: shorter downs may be missed",
}


def _flaps(port: PortItem) -> str:
    if port.flaps_24h is None:
        return "flaps not known"
    return f"{port.flaps_24h} flaps in 24 h"


def _rate(rate_gbps: float | None) -> str:
    return "not known" if rate_gbps is None else f"{rate_gbps:g} Gb/s"
