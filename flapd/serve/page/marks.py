"""Marks: what stands on the timeline, as little of it as can be drawn and told."""

from collections.abc import Iterable, Iterator
from typing import Literal
from urllib.parse import quote

import msgspec

from flapd.serve.incident_words import is_end_seen, words
from flapd.serve.items import FlapItem
from flapd.serve.job_items import FaultItem, IncidentItem, StallItem
from flapd.serve.page.words import lasted, unix_ms

NO_JOB = "no job"

Kind = Literal["outage", "stall", "fault", "incident"]


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """Times are unix milliseconds."""

    kind: Kind
    row: str
    """A port, or a job."""
    begin: int
    sure_begin: int
    """From then on for sure."""
    sure_end: int | None
    """Until then for sure; None: it goes on."""
    end: int | None
    text: str
    href: str | None


class MarkList(msgspec.Struct, frozen=True):
    marks: list[Mark]
    """In order of time."""
    partly: bool
    """There are more in this span: these are the newest."""


def mark_list(marks: Iterable[Mark], *, partly: bool) -> MarkList:
    return MarkList(sorted(marks, key=lambda mark: mark.begin), partly)


def flap_mark(flap: FlapItem) -> Mark:
    begin, sure_begin = round(unix_ms(flap.down.earliest)), round(unix_ms(flap.down.latest))
    sure_end: int | None = None
    end: int | None = None
    if flap.status == "lost":
        sure_end = end = sure_begin
    elif flap.status == "closed" and flap.up is not None:
        sure_end, end = round(unix_ms(flap.up.earliest)), round(unix_ms(flap.up.latest))
    text = f"down, {words(flap.cause)}, {lasted(flap)}"
    href = f"/flaps/{quote(flap.id, safe='')}"
    return Mark("outage", flap.port, begin, sure_begin, sure_end, end, text, href)


def stall_marks(stall: StallItem) -> Iterator[Mark]:
    most = "" if is_end_seen(stall.blind_to) else "at most "
    seconds = "goes on" if stall.seconds is None else f"{most}{stall.seconds:,.1f} s"
    text = f"traffic stands still, {words(stall.stall_class)}, {seconds}"
    yield from _mark("stall", stall.job, stall.begin, stall.end, text)


def fault_marks(fault: FaultItem) -> Iterator[Mark]:
    if fault.merged_into is None:
        rank = "" if fault.rank is None else f", rank {fault.rank}"
        first = ", first error" if fault.primary else ""
        text = f"{words(fault.kind)}{rank}{first}"
        yield from _mark("fault", fault.job, fault.time, fault.time, text)


def incident_marks(incident: IncidentItem) -> Iterator[Mark]:
    text, href = f"incident, {words(incident.verdict)}", f"/incidents/{quote(incident.id, safe='')}"
    end = None if incident.open else incident.end
    yield from _mark("incident", incident.job, incident.begin, end, text, href)


def _mark(
    kind: Kind, job: str | None, begin: str | None, end: str | None, text: str, href: str = ""
) -> Iterator[Mark]:
    """None where nobody knows when."""
    if begin is not None:
        first, last = round(unix_ms(begin)), None if end is None else round(unix_ms(end))
        row = NO_JOB if job is None else f"job {job}"
        yield Mark(kind, row, first, first, last, last, text, href or None)
