"""WatchScreen: one screen of what is, and of what happened last, for any size. Pure."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flapd.cli.answers import PortAnswer
from flapd.cli.findings import AGENT, Finding
from flapd.cli.status import headline, job_words, ports_counted
from flapd.cli.text import clock_time, printable
from flapd.cli.watch_feed import EVERY_SECONDS, EVERY_SECONDS_WITH_STREAM, View
from flapd.cli.watch_fit import Entry, Line, Section, fitted
from flapd.cli.watch_told import told_lately
from flapd.model.times import SECOND_NS, rfc3339

_LATE_SECONDS = 2 * EVERY_SECONDS_WITH_STREAM
_ABOUT = 16
_INDENT = 4


class Size(NamedTuple):
    columns: int
    lines: int


def screen(view: View, size: Size, unix_ns: int, utc: bool) -> list[Line]:
    """At most so many lines; the first says whether anything is wrong."""
    top = [*_top(view, size.columns, unix_ns, utc)]
    rows = fitted([*_sections(view, size.columns, utc)], size.lines - len(top) - 1)
    lines = [*top, *rows, Line(" q quits", "dim")][: size.lines]
    return [Line(printable(line.text), line.style) for line in lines]


def _top(view: View, columns: int, unix_ns: int, utc: bool) -> Iterator[Line]:
    clock = _clock(unix_ns, utc)
    now = view.seen.now
    said = headline(now.told, now.found)
    if view.gone is None:
        style = "bold red" if now.found.wrong else "bold green"
        yield Line(f"{said}   {clock}   {_how(view, unix_ns)}", style)
        return
    since = _clock(view.gone_unix_ns, utc)
    yield Line(f"NOT KNOWN: no answer since {since}   {clock}", "bold red reverse")
    yield from _entry(view.gone, "red", columns, 0)
    yield Line(f"What follows was so at {_clock(view.seen.unix_ns, utc)}: {said}")


def _how(view: View, unix_ns: int) -> str:
    """News comes."""
    age_seconds = (unix_ns - view.seen.unix_ns) / SECOND_NS
    if age_seconds > _LATE_SECONDS:
        return f"AS OF {age_seconds:.0f} S AGO"
    return "live" if view.is_live else f"asked every {EVERY_SECONDS:g} s"


def _clock(unix_ns: int, utc: bool) -> str:
    """Time of day and zone."""
    return clock_time(rfc3339(unix_ns), utc).partition(" ")[2]


def _sections(view: View, columns: int, utc: bool) -> Iterator[Section]:
    """The most important first."""
    seen = view.seen
    told, listed, found = seen.now.told, seen.now.listed, seen.now.found
    yield from _findings("wrong now", found.wrong, "red", columns)
    yield from _findings("expected, as it is planned", found.planned, "yellow", columns)
    zone, lately = told_lately(seen, utc)
    happened = [_entry(f"  {said}", style, columns, _INDENT) for said, style in lately]
    yield Section(f"last 24 h, the newest first ({zone})", happened)
    ports = [[_port(port, utc)] for port in listed.items if port.watched]
    yield Section(f"ports: {ports_counted(told, listed)}", ports)
    if told is not None and told.jobs is not None:
        jobs = [_entry(f"  {job_words(job)}", "", columns, _INDENT) for job in told.jobs.running]
        yield Section(f"jobs: {len(jobs)}" if jobs else "jobs: none is seen here", jobs)
    blind = [*found.blind, *(Finding(AGENT, why) for why in seen.not_told)]
    yield from _findings("cannot be seen", blind, "yellow", columns)


def _findings(title: str, found: Sequence[Finding], style: str, columns: int) -> Iterator[Section]:
    if found:
        texts = [f"  {one.about:<{_ABOUT}} {one.said}" for one in found]
        entries = [_entry(text, style, columns, _ABOUT + 3) for text in texts]
        yield Section(f"{title}: {len(found)}", entries)


def _entry(text: str, style: str, columns: int, indent: int) -> Entry:
    gap = " " * min(indent, columns // 2)
    wrapped = textwrap.wrap(printable(text), max(columns, 8), subsequent_indent=gap)
    return [Line(line, style) for line in wrapped]


def _port(port: PortAnswer, utc: bool) -> Line:
    state, style = _state(port)
    rate = "" if port.rate_gbps is None else f"{port.rate_gbps:g} Gb/s"
    flaps = "" if port.flaps_24h is None else _flaps(port.flaps_24h)
    last = "" if port.last_down is None else f"last {clock_time(port.last_down.latest, utc)}"
    planned = "planned work" if port.maintenance else ""
    text = f"  {port.port:<{_ABOUT}} {state:<10} {rate:>9} {flaps:>10}   {last}  {planned}"
    return Line(text.rstrip(), style)


def _flaps(count: int) -> str:
    return "1 flap" if count == 1 else f"{count} flaps"


def _state(port: PortAnswer) -> tuple[str, str]:
    if not port.readable:
        return "not read", "yellow"
    if port.up is None:
        return "not known", "yellow"
    if not port.up:
        return "DOWN", "bold red"
    return ("flapping", "red") if port.flapping else ("up", "")
