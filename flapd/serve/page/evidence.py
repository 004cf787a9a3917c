"""Evidence of an incident, in order of time."""

from collections.abc import Iterator
from typing import NamedTuple

from flapd.serve.incident_words import flows_again, words
from flapd.serve.items import FlapItem
from flapd.serve.job_items import FaultItem, IncidentDetail, StallItem
from flapd.serve.page.html import Child, Html, element
from flapd.serve.page.parts import Column, table
from flapd.serve.page.words import downs, flap_link, instant, length, moment, port_link


class Seen(NamedTuple):
    order: str
    """RFC 3339, which sorts; "" where nobody knows when."""
    when: Child
    who: Child
    what: Child
    note: str


def evidence(incident: IncidentDetail) -> Iterator[Html]:
    """What follows from something else is there and does not stand in the way."""
    symptoms = {cause.symptom for cause in incident.causes}
    seen = [row for flap in incident.flaps for row in _flap(flap)]
    seen += [row for stall in incident.stalls for row in _stall(stall)]
    first = [one for one in incident.faults if one.primary or one.id in symptoms]
    others = [_fault(one) for one in incident.faults if one not in first]
    yield _table("Evidence, in order of time", [*seen, *map(_fault, first)])
    if others:
        summary = element("summary", f"{len(others)} messages that follow from these")
        yield element("details", summary, _table("What follows from these", others))


def _table(caption: str, seen: list[Seen]) -> Html:
    columns = [Column("Seen (UTC)"), Column("Who"), Column("What"), Column("", "wide")]
    in_order = sorted(seen, key=lambda row: row.order or "~")
    rows = ((row.when, row.who, row.what, row.note) for row in in_order)
    return table(caption, columns, rows, "It is not kept any more.", "stack")


def extent(incident: IncidentDetail) -> tuple[str, str] | None:
    """From the first to the last of it, in RFC 3339; None where none of it is dated."""
    times = [one.down.earliest for one in incident.flaps]
    times += [one.up.latest for one in incident.flaps if one.up is not None]
    times += [time for one in incident.stalls for time in (one.begin, one.end) if time is not None]
    times += [one.time for one in incident.faults if one.time is not None]
    return (min(times), max(times)) if times else None


def _flap(flap: FlapItem) -> Iterator[Seen]:
    who = port_link(flap.port)
    count = "" if flap.count == 1 else f", {downs(flap)} downs"
    told = f"goes down{count}, {words(flap.cause)}"
    what = [flap_link(flap.id, told), f": {flap.reason}" if flap.reason else None]
    yield Seen(flap.down.earliest, moment(flap.down), who, what, words(flap.seen))
    if flap.up is not None:
        back = f"is back after {length(flap.down_seconds)}"
        yield Seen(flap.up.earliest, moment(flap.up), who, back, "")


def _stall(stall: StallItem) -> Iterator[Seen]:
    around, who = stall.resolution_seconds, f"job {stall.job}"
    ports = f" on {', '.join(stall.ports)}" if stall.ports else ""
    told, kind = f"traffic stands still{ports}", words(stall.stall_class)
    yield Seen(stall.begin or "", instant(stall.begin, around), who, told, kind)
    if stall.end is not None:
        told = flows_again(stall.seconds, stall.expected_seconds, stall.blind_to)
        yield Seen(stall.end, instant(stall.end, around), who, told, "")


def _fault(fault: FaultItem) -> Seen:
    who = f"rank {fault.rank}" if fault.rank is not None else fault.host or fault.hca or "not told"
    note = "first error" if fault.primary else "follows" if fault.consequence else ""
    repeats = f", {fault.repeats} times" if fault.repeats > 1 else ""
    where = None
    if fault.source is not None:
        where = element("small", f"{fault.source.file} at byte {fault.source.offset:,}")
    what = [f"{words(fault.kind)}{repeats}", element("code", fault.text, class_="log"), where]
    when = instant(fault.time, fault.clock_error_seconds)
    return Seen(fault.time or "", when, who, what, note)
