"""Reading of logs and dumps: what they tell, held to a bounded size."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone, tzinfo
from functools import partial
from itertools import chain
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from flapd.cli.analyze_files import CHUNK_BYTES, DamagedError, Opened, opened, size_bytes
from flapd.core.job.clock import Clock
from flapd.core.job.dump import Dump, Entry, dump_of
from flapd.core.job.stream import LogStream
from flapd.model.errors import FlapdError
from flapd.model.fault import Fault
from flapd.model.finding import Finding, Member, Network, Setting, Step
from flapd.model.times import SECOND_NS
from flapd.sources.dumps import LARGEST_FILE_BYTES, plain_data

MOST_MESSAGES = 10_000
"""Of faults, the earliest: what is near the cause comes first."""
MOST_NOTES = 20_000
MOST_DUMPS = 16_384

LATEST_NS = 4_102_444_800 * SECOND_NS
"""The year 2100: a file may claim to be of any."""
_MOST_ENTRIES = 20
"""Of a group."""
_MOST_ENTRIES_OF_DUMP = 400
_RANK = re.compile(r"(\d{1,7})(?:\.\w{1,8}){0,2}$", re.ASCII)


class Zone(msgspec.Struct, frozen=True):
    """In which zone processes printed their times, and in which year, where they do not say."""

    zone: tzinfo
    year: int | None = None

    def clock(self, changed_ns: int | None) -> Clock:
        """Of a file that was written to last at this time."""
        reference_ns = time.time_ns() if changed_ns is None else changed_ns
        reference_ns = min(max(reference_ns, 0), LATEST_NS)
        at = datetime.fromtimestamp(reference_ns / SECOND_NS, timezone.utc)
        at = at if self.year is None else at.replace(year=self.year, day=min(at.day, 28))
        offset = self.zone.utcoffset(at.replace(tzinfo=None))
        return Clock(
            reference_ns=reference_ns,
            utc_offset_seconds=0 if offset is None else round(offset.total_seconds()),
            year=self.year,
        )


class FileRead(msgspec.Struct):
    """What one file was."""

    file: str
    kind: str
    """`log` or `dump`."""
    bytes: int = 0
    """Unpacked."""
    lines: int = 0
    rank: int | None = None
    """Of a dump, by its name."""
    problem: str | None = None
    """Why no more of it was read."""


class Material(msgspec.Struct):
    """All that was read."""

    files: list[FileRead] = []
    faults: list[Fault] = []
    dropped: int = 0
    """Messages of faults that are not among them, later than all that are."""
    settings: dict[Setting, None] = {}
    members: dict[Member, None] = {}
    networks: dict[Network, None] = {}
    steps: list[Step] = []
    dumps: dict[int, Dump] = {}
    """By rank."""

    def take(self, findings: Iterable[Finding]) -> None:
        for one in findings:
            if isinstance(one, Fault):
                self.faults.append(one)
            elif isinstance(one, Setting):
                _keep(self.settings, one)
            elif isinstance(one, Member):
                _keep(self.members, one)
            elif isinstance(one, Network):
                _keep(self.networks, one)
            elif isinstance(one, Step) and len(self.steps) < MOST_NOTES:
                self.steps.append(one)
        if len(self.faults) > 2 * MOST_MESSAGES:
            self.shorten()

    def shorten(self) -> None:
        """To the earliest faults; those without a time are the last."""
        self.faults.sort(key=lambda one: (one.time_ns is None, one.time_ns or 0, one.id))
        self.dropped += len(self.faults[MOST_MESSAGES:])
        del self.faults[MOST_MESSAGES:]


_Note = TypeVar("_Note", Setting, Member, Network)


def _keep(notes: dict[_Note, None], one: _Note) -> None:
    if len(notes) < MOST_NOTES:
        notes[one] = None


def read(names: Iterable[str], zone: Zone, passed: Callable[[int], None]) -> Material:
    """All files, one after the other; what is damaged is read as far as it goes.

    `passed` is told how many bytes of all files are behind.
    """
    material, behind = Material(), 0
    for name in names:
        passed(behind)
        try:
            with opened(name) as file:
                _read(file, material, zone, partial(_passed, passed, behind))
        except DamagedError as error:
            material.files.append(FileRead(name, "log", problem=str(error)))
        behind += size_bytes(name)
    material.shorten()
    return material


def _passed(passed: Callable[[int], None], behind: int, done: int) -> None:
    passed(behind + done)


def _read(file: Opened, material: Material, zone: Zone, passed: Callable[[int], None]) -> None:
    told = FileRead(file.name, "log")
    material.files.append(told)
    pieces = file.pieces(passed)
    try:
        if file.may_be_dump:
            content = _up_to(pieces, LARGEST_FILE_BYTES)
            if _take_dump(content, told, material):
                return
            pieces = chain(_cut(content), pieces)
        _take_log(pieces, told, material, zone.clock(file.changed_ns))
    except DamagedError as error:
        told.problem = str(error)


def _up_to(pieces: Iterable[bytes], most: int) -> bytes:
    """At least so much, where there is so much."""
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) > most:
            break
    return bytes(content)


def _cut(content: bytes) -> Iterator[bytes]:
    return (content[at : at + CHUNK_BYTES] for at in range(0, len(content), CHUNK_BYTES))


def _take_dump(content: bytes, told: FileRead, material: Material) -> bool:
    """False where it only looked like a dump."""
    try:
        dump = dump_of(plain_data(content))
    except FlapdError as error:
        if content[:1] != b"\x80":
            return False
        told.kind, told.problem = "dump", str(error)
        return True
    told.kind, told.bytes = "dump", len(content)
    rank = _RANK.search(told.file)
    if rank is None:
        told.problem = "its name does not end in a rank, as nccl_trace_rank_12 does"
    elif len(material.dumps) >= MOST_DUMPS:
        told.problem = f"no more than {MOST_DUMPS} dumps are read"
    else:
        told.rank = int(rank[1])
        material.dumps[told.rank] = _shortened(dump)
    return True


def _shortened(dump: Dump) -> Dump:
    """Of each group what tells where it stands: the first that waits and the last that are done.

    A job of 1,024 ranks with 20,000 entries each would not fit into memory.
    """
    by_group: dict[tuple[object, ...], list[Entry]] = {}
    for entry in sorted(dump.entries, key=lambda one: one.seq or 0):
        by_group.setdefault((entry.process_group, entry.is_p2p, entry.is_done), []).append(entry)
    kept = [
        entry
        for (_, _, is_done), entries in by_group.items()
        for entry in (entries[-_MOST_ENTRIES:] if is_done else entries[:_MOST_ENTRIES])
    ]
    return replace(dump, entries=kept[:_MOST_ENTRIES_OF_DUMP])


def _take_log(pieces: Iterable[bytes], told: FileRead, material: Material, clock: Clock) -> None:
    stream = LogStream(told.file, scope=told.file)
    try:
        for piece in pieces:
            told.bytes += len(piece)
            material.take(stream.feed(piece, clock))
    finally:
        material.take(stream.finish(clock))
        told.lines = stream.lines
