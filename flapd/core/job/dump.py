"""Dumps: what the flight recorders of a job's ranks say of where it stands.

torch/csrc/distributed/c10d/FlightRecorder.cpp, versions "1.4" to "2.10"; before that a dump was
the list of entries alone. Pickle and JSON differ: None is 0, a tuple a list, numbers in
pg_status are strings.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec

from flapd.model.errors import FlapdError
from flapd.model.standing import Standing

MOST_ENTRIES = 100_000

_TIME_UNKNOWN = (None, 0)
_RANK = re.compile(r"\b\d{1,9}\b", re.ASCII)

_Number = Annotated[int, msgspec.Meta(ge=-1, le=2**62)]
"""What the recorder counts: an untrusted file may hold numbers that no float can."""


class Entry(msgspec.Struct, frozen=True):
    """One collective or point-to-point operation that a rank enqueued."""

    process_group: tuple[str, str] = ("", "")
    """Its name and its description."""
    collective_seq_id: _Number | None = None
    seq_id: _Number | None = None
    """Instead of collective_seq_id, in version 1.4."""
    is_p2p: bool = False
    profiling_name: str = ""
    time_created_ns: _Number | None = None
    """Unix time: the only clock in the job's own records that has a zone."""
    time_discovered_completed_ns: _Number | None = None
    state: str = ""
    retired: bool = False
    timeout_ms: _Number | None = None

    @property
    def seq(self) -> int | None:
        return self.seq_id if self.collective_seq_id is None else self.collective_seq_id

    @property
    def is_done(self) -> bool:
        """Gloo leaves the state at "scheduled" and retires what is done."""
        if self.state == "completed" or self.time_discovered_completed_ns not in _TIME_UNKNOWN:
            return True
        return self.retired and self.profiling_name.startswith("gloo:")


class _Group(msgspec.Struct, frozen=True):
    name: str = ""
    desc: str = ""
    ranks: str = ""
    """Such as "[0, 1]"."""


class _Status(msgspec.Struct, frozen=True):
    last_enqueued_collective: _Number = -1
    last_started_collective: _Number = -1
    last_completed_collective: _Number = -1


class Dump(msgspec.Struct, frozen=True):
    """What one rank's recorder holds."""

    version: str = ""
    entries: list[Entry] = []
    pg_config: dict[str, _Group] = {}
    pg_status: dict[str, _Status] = {}
    nccl_version: str | None = None
    comm_lib_version: str | None = None


def dump_of(content: Any) -> Dump:
    """What plain data read from a dump says; FlapdError where it is no dump."""
    whole = {"entries": content} if isinstance(content, list) else content
    entries = whole.get("entries") if isinstance(whole, dict) else None
    if not isinstance(entries, list):
        raise FlapdError("no flight recorder's dump: it has no list of entries")
    if len(entries) > MOST_ENTRIES:
        raise FlapdError(f"the dump has more than {MOST_ENTRIES} entries")
    try:
        return msgspec.convert(whole, Dump, strict=False)
    except msgspec.ValidationError as error:
        raise FlapdError(f"no flight recorder's dump: {error}") from error


def standings(dumps: Iterable[tuple[int, Dump]]) -> list[Standing]:
    """By rank of the job: where each group stands that does not go on, the oldest first."""
    by_rank = dict(dumps)
    names = sorted({name for dump in by_rank.values() for name in _names(dump)})
    found = (_standing(name, by_rank) for name in names)
    return sorted((one for one in found if one is not None), key=lambda one: one.created_ns)


def timeouts_seconds(dump: Dump) -> tuple[float, ...]:
    """Of its process groups, each once."""
    return tuple(sorted({entry.timeout_ms / 1000 for entry in dump.entries if entry.timeout_ms}))


def _names(dump: Dump) -> set[tuple[str, str]]:
    return {entry.process_group for entry in dump.entries}


def _standing(name: tuple[str, str], by_rank: dict[int, Dump]) -> Standing | None:
    collectives = {rank: _collectives(dump, name) for rank, dump in by_rank.items()}
    waiting = [_first_waiting(entries) for entries in collectives.values()]
    firsts = [entry for entry in waiting if entry is not None]
    if not firsts:
        return None
    first = min(firsts, key=lambda entry: (entry.seq or 0, entry.time_created_ns or 0))
    assert first.seq is not None
    ranks = _ranks(name, by_rank.values())
    at_it = {rank: _entry(entries, first.seq) for rank, entries in collectives.items()}
    joined = {rank: entry for rank, entry in at_it.items() if entry is not None}
    members = [rank for rank in by_rank if rank in ranks or (not ranks and collectives[rank])]
    return Standing(
        group=name[0],
        description=name[1],
        ranks=ranks,
        seq=first.seq,
        op=first.profiling_name.partition(":")[2],
        created_ns=min(entry.time_created_ns or 0 for entry in joined.values()),
        timeout_seconds=first.timeout_ms / 1000 if first.timeout_ms else None,
        states={
            rank: "completed" if entry.is_done else entry.state for rank, entry in joined.items()
        },
        missing=tuple(
            sorted(rank for rank in members if _never_came(collectives[rank], first.seq))
        ),
        last_completed={rank: _last_completed(collectives[rank]) for rank in members},
        silent=tuple(sorted(set(ranks) - by_rank.keys())),
    )


def _collectives(dump: Dump, name: tuple[str, str]) -> list[Entry]:
    return [
        entry
        for entry in dump.entries
        if entry.process_group == name and not entry.is_p2p and entry.seq is not None
    ]


def _first_waiting(entries: Sequence[Entry]) -> Entry | None:
    return min(
        (entry for entry in entries if not entry.is_done),
        key=lambda one: one.seq or 0,
        default=None,
    )


def _entry(entries: Sequence[Entry], seq: int) -> Entry | None:
    return next((entry for entry in entries if entry.seq == seq), None)


def _never_came(entries: Sequence[Entry], seq: int) -> bool:
    """The recorder keeps the newest: what is older than all it has may have been overwritten."""
    return all((entry.seq or 0) < seq for entry in entries)


def _last_completed(entries: Sequence[Entry]) -> int:
    return max((entry.seq or 0 for entry in entries if entry.is_done), default=-1)


def _ranks(name: tuple[str, str], dumps: Iterable[Dump]) -> tuple[int, ...]:
    for dump in dumps:
        for key, group in dump.pg_config.items():
            if name[0] in (key, group.name):
                return tuple(int(rank) for rank in _RANK.findall(group.ranks))
    return ()
