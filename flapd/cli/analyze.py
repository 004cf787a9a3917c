"""`flapd analyze`: what logs and dumps tell of a job that was hurt, without an agent."""

import argparse
import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import msgspec

from flapd.cli.analyze_evidence import evidence_of, faults_of, flaps_in, standings_of
from flapd.cli.analyze_files import check, size_bytes
from flapd.cli.analyze_reading import FileRead, Zone, read
from flapd.cli.analyze_text import Found, print_account
from flapd.cli.output import print_json
from flapd.cli.progress import progress
from flapd.config import Config
from flapd.core.incident.incidents import incidents_of
from flapd.model.errors import FlapdError
from flapd.model.standing import Standing
from flapd.serve.job_items import FaultItem, IncidentItem
from flapd.serve.told_jobs import fault_item, incident_item

NOTHING_FOUND = 1

_OFFSET = re.compile(r"(?:UTC)?([+-])(\d{2}):?(\d{2})", re.ASCII)


class Analyzed(msgspec.Struct, frozen=True):
    """What --json prints."""

    files: list[FileRead]
    lines: int
    faults: list[FaultItem]
    faults_left_out: int
    """Later than all that are told."""
    standings: list[Standing]
    incidents: list[IncidentItem]
    timezone: str
    """Taken for times that name none."""


def analyze(arguments: argparse.Namespace, config: Config) -> int:
    """0 where anything was found, 1 where nothing was."""
    names: Sequence[str] = arguments.logs
    zone = zone_of(arguments.timezone)
    check(names)
    total = sum(map(size_bytes, names))
    flaps = None if arguments.flaps is None else flaps_in(arguments.flaps)
    with progress("reading") as passed:
        material = read(names, Zone(zone, arguments.year), lambda done: passed(done, total))
    faults, later = faults_of(material)
    evidence = evidence_of(material, faults, flaps, arguments.gpus, config)
    found = Found(
        material=material,
        faults=faults,
        left_out=material.dropped + later,
        standings=standings_of(material),
        incidents=incidents_of(evidence),
        zone=zone,
    )
    if arguments.json:
        print_json(msgspec.json.encode(_analyzed(found)))
    else:
        print_account(found, assumed=arguments.timezone is None, has_flaps=flaps is not None)
    return 0 if faults or found.standings or found.incidents else NOTHING_FOUND


def zone_of(written: str | None) -> tzinfo:
    """Of a name such as Europe/Berlin, `+01:00`, or this machine's; FlapdError where it is none."""
    if written is None:
        return _Local()
    offset = _OFFSET.fullmatch(written)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    if written in ("UTC", "Z"):
        return timezone.utc  # also where no zones are installed
    try:
        return ZoneInfo(written)
    except (OSError, ValueError, KeyError):
        raise FlapdError(
            f"--timezone {written}: a name such as Europe/Berlin or UTC, or an offset such as "
            "+01:00, would be right"
        ) from None


class _Local(tzinfo):
    """Of this machine, summer and winter."""

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        return None if at is None else at.replace(tzinfo=None).astimezone().utcoffset()

    def fromutc(self, at: datetime) -> datetime:
        return at.replace(tzinfo=timezone.utc).astimezone().replace(tzinfo=self)

    def dst(self, _at: datetime | None) -> timedelta | None:
        return None

    def tzname(self, at: datetime | None) -> str | None:
        return None if at is None else at.replace(tzinfo=None).astimezone().tzname()

    def __str__(self) -> str:
        return "this machine's"


def _analyzed(found: Found) -> Analyzed:
    material = found.material
    return Analyzed(
        files=material.files,
        lines=sum(one.lines for one in material.files),
        faults=[fault_item(one) for one in found.faults],
        faults_left_out=found.left_out,
        standings=found.standings,
        incidents=[incident_item(one) for one in found.incidents],
        timezone=str(found.zone),
    )
