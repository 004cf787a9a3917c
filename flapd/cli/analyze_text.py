"""An account of what logs and dumps tell, as a colleague would give it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from typing import NamedTuple

from flapd.cli.analyze_reading import Material
from flapd.cli.output import Cell, Column, print_line, print_table
from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.model.standing import Standing

_MOST_FAULTS = 20
_MOST_INCIDENTS = 5
_MOST_RANKS = 12
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Found(NamedTuple):
    material: Material
    faults: list[Fault]
    left_out: int
    """Later faults."""
    standings: list[Standing]
    incidents: list[Incident]
    zone: tzinfo


def print_account(found: Found, *, assumed: bool, has_flaps: bool) -> None:
    """What was read, what went wrong first, where ranks stand, what that means."""
    for sentence in _read(found, assumed):
        print_line(sentence, indent=2)
    if found.faults:
        print()
        _print_faults(found)
    for sentence in _standing_sentences(found):
        print()
        print_line(sentence, indent=2)
    for incident in found.incidents[:_MOST_INCIDENTS]:
        print()
        _print_incident(incident, found.zone)
    more = len(found.incidents) - _MOST_INCIDENTS
    if more > 0:
        print()
        print_line(f"And {more} more incidents (--json has all).")
    if not has_flaps:
        print()
        print_line(
            "No link was looked at: with `flapd flaps --json --since T >FILE` of the nodes "
            "and --flaps FILE this says whether one did it.",
            indent=2,
        )


def _read(found: Found, assumed: bool) -> Iterator[str]:
    files = found.material.files
    kinds = Counter(one.kind for one in files)
    told = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items())
    lines = sum(one.lines for one in files)
    yield f"Read: {told}; {lines:,} line{'' if lines == 1 else 's'}."
    if assumed:
        yield (
            f"Times that name no zone are taken for {_zone(found)}, this machine's: "
            "--timezone says otherwise."
        )
    for one in files:
        if one.problem is not None:
            yield f"{one.file}: {one.problem}."
    if found.left_out:
        yield f"{found.left_out:,} later messages of faults are left out."
    if not found.faults and not found.standings:
        yield "Nothing in it tells of an error, a timeout or a port."


def _zone(found: Found) -> str:
    """Its name at the first error, summer or winter."""
    at_ns = next((one.time_ns for one in found.faults if one.time_ns is not None), 0)
    return _moment(at_ns).astimezone(found.zone).tzname() or str(found.zone)


def _print_faults(found: Found) -> None:
    """The first errors, and what else there is; what follows from them is only counted."""
    primary = [one for one in found.faults if one.primary]
    rest = [one for one in found.faults if not one.primary]
    shown = sorted([*primary, *rest[: max(0, _MOST_FAULTS - len(primary))]], key=_order)
    shown = shown[:_MOST_FAULTS]
    columns = [
        Column(f"time ({_zone(found)})", is_whole=True),
        Column("who"),
        Column("what"),
        Column("times", is_number=True),
        Column(""),
    ]
    print_table(columns, [_fault_row(one, found.zone) for one in shown])
    hidden = Counter(one.kind for one in found.faults if one not in shown)
    if hidden:
        told = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in hidden.items())
        print_line(f"and {told} (--json has all).")


def _order(fault: Fault) -> tuple[bool, int, str]:
    return fault.time_ns is None, fault.time_ns or 0, fault.id


def _fault_row(fault: Fault, zone: tzinfo) -> list[Cell]:
    return [
        Cell(_time(fault.time_ns, zone)),
        Cell(_who(fault)),
        Cell(_what(fault)),
        Cell(str(fault.repeats)),
        Cell("first error" if fault.primary else "", "bold red"),
    ]


def _time(unix_ns: int | None, zone: tzinfo) -> str:
    if unix_ns is None:
        return "not known"
    return f"{_moment(unix_ns).astimezone(zone):%m-%d %H:%M:%S}.{unix_ns // 1_000_000 % 1000:03d}"


def _moment(unix_ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=unix_ns // 1000)


def _who(fault: Fault) -> str:
    told = [
        None if fault.rank is None else f"rank {fault.rank}",
        fault.host,
        fault.hca if fault.port is None else f"{fault.hca}/{fault.port}",
    ]
    return " ".join(one for one in told if one) or "not told"


def _what(fault: Fault) -> str:
    told = [fault.kind.replace("_", " ")]
    if fault.op is not None:
        told.append(fault.op)
    if fault.seq is not None:
        told.append(f"seq {fault.seq}")
    if fault.ran_seconds is not None:
        told.append(f"after {fault.ran_seconds:,.1f} s")
    if fault.event is not None:
        told.append(fault.event)
    elif fault.status is not None:
        told.append(f"status {fault.status}")
    if fault.peer is not None:
        told.append(f"peer {fault.peer}")
    return ", ".join(told)


def _standing_sentences(found: Found) -> Iterator[str]:
    for one in found.standings:
        yield " ".join(_standing(one, found.zone))


def _standing(one: Standing, zone: tzinfo) -> Iterator[str]:
    yield (
        f"By the dumps, group {one.description or one.group} stands at collective {one.seq} "
        f"({one.op}), which the first rank enqueued at {_time(one.created_ns, zone)}."
    )
    if one.missing:
        yield f"{_ranks(one.missing)} never came to it: look there first."
    elif one.lagging:
        yield f"{_ranks(one.lagging)} completed least: look there first."
    if one.silent:
        yield f"Of {_ranks(one.silent)} there is no dump."


def _ranks(ranks: Sequence[int]) -> str:
    more = len(ranks) - _MOST_RANKS
    told = ", ".join(map(str, ranks[:_MOST_RANKS])) + (f" and {more} more" if more > 0 else "")
    return f"rank {told}" if len(ranks) == 1 else f"ranks {told}"


def _print_incident(incident: Incident, zone: tzinfo) -> None:
    begun = _time(incident.begin_unix_ns, zone)
    print_line(f"{begun}  {incident.verdict.replace('_', ' ')}", style="bold")
    for sentence in _told(incident):
        print_line(sentence, indent=2)


def _told(incident: Incident) -> Iterable[str]:
    yield from incident.explanation
    yield from (f"Do: {one}" for one in incident.advice)
