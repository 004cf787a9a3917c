"""Ranks: the processes of jobs among all processes of the node."""

from contextlib import suppress

from flapd.sources.jobs.attempts import Attempts, HangsError
from flapd.sources.jobs.process_table import ProcessTable
from flapd.sources.jobs.procfs import ProcFs
from flapd.sources.jobs.rank_process import RankProcess, block_of, is_forked_from, rank_process

MOST_CANDIDATES = 256
HIDDEN = "processes of others are hidden (hidepid)"
UNREADABLE = (
    "environments of others' processes cannot be read (CAP_SYS_PTRACE):"
    " only ranks with PyTorch's threads are found"
)


class Ranks:
    """By one look after the other; used from one thread at a time."""

    def __init__(self, proc: ProcFs, attempts: Attempts) -> None:
        self.blind_to: tuple[str, ...] = ()
        self._proc = proc
        self._attempts = attempts
        self._table = ProcessTable()
        self._marks: dict[int, int] = {}
        self._candidates: dict[int, None] = {}
        """Named as ranks, without anything yet that only a rank has."""
        self._known: dict[int, RankProcess] = {}
        self._workers: set[int] = set()
        """A rank's forks, also when it is gone."""
        self._readable: dict[int, bool] = {}
        """Whether the environment of each process could be read."""

    def look(self) -> list[RankProcess]:
        present = self._proc.processes()
        self._forget(present)
        due = {*self._table.due(present), *self._candidates} - self._known.keys()
        for pid in sorted(due):
            with suppress(FileNotFoundError, ProcessLookupError, HangsError):
                self._inspect(pid)
        self._part_workers()
        self._note_blindness(present)
        return [rank for pid, rank in self._known.items() if pid not in self._workers]

    def _forget(self, present: dict[int, int]) -> None:
        self._attempts.forget(set(present))
        same = {pid for pid, mark in present.items() if self._marks.get(pid) == mark}
        self._marks = present
        self._known = {
            pid: rank
            for pid, rank in self._known.items()
            if pid in same and self._proc.is_alive(pid)
        }
        self._candidates = {pid: None for pid in self._candidates if pid in same}
        self._workers &= same
        self._readable = {pid: can for pid, can in self._readable.items() if pid in same}

    def _inspect(self, pid: int) -> None:
        with self._attempts.at(pid):
            block = block_of(self._proc, pid)
            rank = rank_process(self._proc, pid, block)
        self._readable[pid] = block.allowed is not None
        if rank is not None:
            self._known[pid] = rank
            self._candidates.pop(pid, None)
        elif block.names_a_rank and len(self._candidates) < MOST_CANDIDATES:
            self._candidates[pid] = None

    def _part_workers(self) -> None:
        ranks = [rank for pid, rank in self._known.items() if pid not in self._workers]
        for rank in ranks:
            if any(is_forked_from(rank, other) for other in ranks):
                self._workers.add(rank.pid)

    def _note_blindness(self, present: dict[int, int]) -> None:
        blind = []
        if 1 not in present:
            blind.append(HIDDEN)
        if sum(self._readable.values()) * 2 < len(self._readable):  # a few are always protected
            blind.append(UNREADABLE)
        if self._attempts.hanging:
            blind.append(
                "processes of which the memory is locked: " + str(len(self._attempts.hanging))
            )
        self.blind_to = tuple(blind)
