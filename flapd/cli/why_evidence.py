"""The evidence of one incident, in order of time."""

from collections.abc import Iterator
from typing import NamedTuple

from flapd.cli.answers import FlapAnswer, Interval
from flapd.cli.flaps import cause, lasted
from flapd.cli.job_answers import FaultAnswer, IncidentDetail, StallAnswer
from flapd.cli.text import count, shifted, span, unix_ns
from flapd.serve.incident_words import flows_again, words

MOST_ROWS = 16
"""What follows from something else is left out first."""


class Seen(NamedTuple):
    when: Interval
    who: str
    what: str
    note: str
    is_first_hand: bool
    """A port, traffic, or an error that follows from no other."""


class Timeline(NamedTuple):
    rows: list[Seen]
    undated: list[str]
    """What nobody knows the time of."""
    left_out: int


def timeline(incident: IncidentDetail) -> Timeline:
    symptoms = {one.symptom: one for one in incident.causes}
    seen = [row for flap in incident.flaps for row in _flap(flap)]
    seen += [row for stall in incident.stalls for row in _stall(stall)]
    seen += [row for fault in incident.faults for row in _fault(fault, fault.id in symptoms)]
    first = sorted(seen, key=lambda row: not row.is_first_hand)[:MOST_ROWS]
    rows = sorted(first, key=lambda row: (unix_ns(row.when.earliest), unix_ns(row.when.latest)))
    undated = [_said(fault) for fault in incident.faults if fault.time is None]
    return Timeline(rows, undated, len(seen) - len(rows))


def _flap(flap: FlapAnswer) -> Iterator[Seen]:
    why = ": ".join(cause(flap)) if flap.cause != "link" or flap.reason else ""
    downs = f"{count(flap.count, flap.count_at_least)} downs" if (flap.count or 1) > 1 else ""
    told = ", ".join(filter(None, ["goes down", downs, why]))
    yield Seen(flap.down, flap.port, told, flap.id, True)
    if flap.up is not None:
        yield Seen(flap.up, flap.port, f"is back after {span(flap.down_seconds)}", "", True)
    else:
        latest = Interval(flap.down.latest, flap.down.latest)
        yield Seen(latest, flap.port, lasted(flap), "", True)


def _stall(stall: StallAnswer) -> Iterator[Seen]:
    who, around = f"job {stall.job}", stall.resolution_seconds
    if stall.begin is not None:
        ports = ", ".join(stall.ports[:3]) + (" ..." if len(stall.ports) > 3 else "")
        told = f"traffic stands still on {ports}" if ports else "traffic stands still"
        yield Seen(shifted(stall.begin, around, 0), who, told, words(stall.stall_class), True)
    if stall.end is not None:
        told = flows_again(stall.seconds, stall.expected_seconds, stall.blind_to)
        yield Seen(shifted(stall.end, 0, around), who, told, "", True)


def _fault(fault: FaultAnswer, is_symptom: bool) -> Iterator[Seen]:
    if fault.time is None:
        return
    error = fault.clock_error_seconds
    note = "first error" if fault.primary else "" if fault.kind == "port_event" else "follows"
    first_hand = fault.primary or is_symptom
    yield Seen(shifted(fault.time, error, error), _who(fault), _said(fault), note, first_hand)


def _who(fault: FaultAnswer) -> str:
    if fault.rank is not None:
        return f"rank {fault.rank}"
    return fault.host or fault.hca or "not told"


def _said(fault: FaultAnswer) -> str:
    place = fault.hca if fault.port is None else f"{fault.hca}/{fault.port}"
    told = (
        words(fault.kind),
        fault.op,
        None if fault.seq is None else f"seq {fault.seq}",
        None if fault.ran_seconds is None else f"after {fault.ran_seconds:,.1f} s",
        fault.event,
        None if fault.status is None or fault.event else f"status {fault.status}",
        None if fault.hca is None else f"on {place}",
        f"x {fault.repeats}" if fault.repeats > 1 else None,
    )
    return ", ".join(one for one in told if one)
