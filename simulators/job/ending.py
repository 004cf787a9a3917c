"""Ending: from the moment a job stands still for good until the last of its processes is gone."""

import math
import random
from typing import Any, NamedTuple

from simulators.job.happenings import CodeHang, Died, Happening, OutOfStep, WatchdogStuck
from simulators.job.queue_pair import Fate, fate_of, queue_pairs
from simulators.job.releases import (
    COORDINATION_SECONDS,
    KEEP_ALIVE_SECONDS,
    LOCAL_KILL_SECONDS,
    TERM_TO_KILL_SECONDS,
    dump_wait_seconds,
    hands_errors_on,
    heartbeat_seconds,
    poll_seconds,
    tells_others,
)
from simulators.job.spec import JobSpec
from simulators.job.truth import SymptomKind

_RETRY_EXCEEDED = 12
_KILLED, _ABORTED = -9, -6
_LONGEST_DUMP_SECONDS = 3.0
_ON_THE_WAY_SECONDS = 0.05
"""From the proxy thread of NCCL to whom asks the communicator."""


class Message(NamedTuple):
    """What a rank says; `values` is what its words are made of."""

    at: float
    rank: int
    name: str
    values: dict[str, Any]


class Stop(NamedTuple):
    """Since `at` nothing moves in the collective `seq`, enqueued at `enqueued_at`."""

    at: float
    enqueued_at: float
    seq: int
    fates: tuple[Fate, ...] = ()
    """Of the queue pairs that gave up."""
    happening: Happening | None = None
    """What stopped it, where that was no queue pair."""


class End(NamedTuple):
    told_at: float
    """When anything first noticed."""
    told: SymptomKind
    gone_at: float
    """When the last process was gone."""
    ends: dict[int, float]
    """By rank: when its process was gone."""
    messages: tuple[Message, ...]
    dumps: dict[int, float]
    """By rank: when its flight recorder's dump was written."""


class Ending:
    """Works out one end."""

    def __init__(self, spec: JobSpec, stop: Stop, rng: random.Random) -> None:
        software = spec.software
        self._spec, self._stop, self._rng = spec, stop, rng
        self._torch = software.torch_version
        self._poll = poll_seconds(self._torch)
        self._is_handled = software.handling != 0
        self._wait = dump_wait_seconds(
            self._torch, dumps=software.is_dumping, share=rng.uniform(0.02, 0.5)
        )
        self._messages: list[Message] = []
        self._told: list[tuple[float, SymptomKind]] = []
        self._own_ends: dict[int, float] = {}
        self._erring: set[int] = set()

    def end(self) -> End:
        self._transport_errors()
        self._own_happening()
        self._timeouts()
        self._errors_of_peers()
        by_launcher = self._ended_by_launcher()
        signal_at = self._signal_at()
        ends = {rank: self._end_of(rank, by_launcher, signal_at) for rank in self._ranks()}
        gone_at = max(ends.values())
        nothing: tuple[float, SymptomKind] = (gone_at, "nothing")
        told_at, told = min(self._told, default=nothing)
        dumps = self._dumps(signal_at, ends)
        self._last_words(by_launcher)
        said = (one for one in self._messages if one.at <= ends[one.rank])
        return End(told_at, told, gone_at, ends, tuple(sorted(said, key=_order)), dumps)

    def _ranks(self) -> range:
        return range(self._spec.world_size)

    def _say(self, at: float, rank: int, name: str, **values: Any) -> None:
        self._messages.append(Message(at, rank, name, values))

    def _transport_errors(self) -> None:
        for fate in sorted(self._stop.fates, key=lambda one: one.at or math.inf):
            if fate.at is not None:
                self._transport_error(fate.at, fate.queue_pair.owner, fate.queue_pair.peer)

    def _transport_error(self, at: float, rank: int, peer: int) -> None:
        """A rank's first, which is handed on where the release does that."""
        if rank in self._erring:
            return
        self._erring.add(rank)
        self._say(at, rank, "completion", status=_RETRY_EXCEEDED, peer=peer)
        if not (hands_errors_on(self._spec.software.nccl_version) and self._is_handled):
            return
        noticed = at + _ON_THE_WAY_SECONDS * self._rng.random() + self._poll * self._rng.random()
        self._say(noticed, rank, "nccl_error", peer=peer, **self._position(rank))
        self._told.append((noticed, "error"))
        self._aborts(noticed, rank)

    def _aborts(self, noticed: float, rank: int) -> None:
        end = noticed + self._wait + 0.01
        self._own_ends[rank] = min(end, self._own_ends.get(rank, math.inf))

    def _own_happening(self) -> None:
        happening, stop = self._stop.happening, self._stop
        if isinstance(happening, Died):
            self._own_ends[happening.rank] = stop.at
            self._told.append((stop.at, "death"))
        if isinstance(happening, WatchdogStuck):
            beat = heartbeat_seconds(self._torch)
            if beat is not None:
                stuck, rank = stop.at + beat, happening.rank
                self._say(stuck, rank, "watchdog_stuck", seconds=beat)
                self._say(stuck + beat, rank, "heartbeat_kill", reason="hang")
                self._told.append((stuck, "heartbeat"))
                self._own_ends[rank] = stuck + beat

    def _timeouts(self) -> None:
        """Every rank that waits in the collective runs into its own, all within a poll."""
        if not self._is_handled:
            return
        timeout = self._spec.software.group_timeout_seconds
        for rank in self._ranks():
            if self._waits(rank):
                ran = timeout + self._poll * self._rng.random()
                at = self._stop.enqueued_at + ran
                where = self._position(rank)
                self._say(at, rank, "watchdog_timeout", timeout=timeout, ran=ran, **where)
                self._told.append((at, "timeout"))
                self._aborts(at, rank)

    def _errors_of_peers(self) -> None:
        """Whoever sends to the first that ended is never answered."""
        if not self._own_ends:
            return
        first = min(self._own_ends, key=lambda rank: (self._own_ends[rank], rank))
        at, size = self._own_ends[first], self._spec.ranks_per_node
        for pair in queue_pairs(self._spec, first // size, first % size):
            fate = fate_of(pair, self._spec, at, lambda _: False)
            if pair.peer == first and fate.at is not None:
                self._transport_error(fate.at, pair.owner, first)

    def _waits(self, rank: int) -> bool:
        happening = self._stop.happening
        absent = isinstance(happening, CodeHang | Died | WatchdogStuck)
        return not (absent and happening is not None and getattr(happening, "rank", None) == rank)

    def _position(self, rank: int) -> dict[str, Any]:
        """Which collective it waits in, and how far it got."""
        happening, seq = self._stop.happening, self._stop.seq
        odd = isinstance(happening, OutOfStep) and happening.rank == rank
        enqueued = seq + 3 if self._waits(rank) else seq - 1
        return {
            "seq": seq,
            "op": "_ALLGATHER_BASE" if odd else "ALLREDUCE",
            "enqueued": enqueued,
            "completed": seq - 1,
        }

    def _ended_by_launcher(self) -> dict[int, float]:
        """By rank; whoever is not in it is left alone."""
        launcher = self._spec.software.launcher
        if launcher == "slurm" or not self._own_ends:
            return {}
        first = min(self._own_ends, key=lambda rank: (self._own_ends[rank], rank))
        at, node = self._own_ends[first], self._spec.node_of(first)
        ends = {}
        for other in range(self._spec.nodes):
            near = other == node or launcher == "slurm-kill-on-bad-exit"
            heard = at + self._rng.uniform(*(LOCAL_KILL_SECONDS if near else KEEP_ALIVE_SECONDS))
            for port in range(self._spec.ranks_per_node):
                stays = self._rng.random() < 1 / (50 * self._spec.ranks_per_node)
                ends[self._spec.rank_of(other, port)] = heard + TERM_TO_KILL_SECONDS * stays
        return ends

    def _signal_at(self) -> float | None:
        """When a rank asked all to dump; None: none does."""
        asks = tells_others(self._torch, dumps=self._spec.software.is_dumping)
        first = min((at for at, kind in self._told if kind != "death"), default=None)
        return first if asks else None

    def _end_of(self, rank: int, by_launcher: dict[int, float], signal_at: float | None) -> float:
        ways = [self._own_ends.get(rank, math.inf), by_launcher.get(rank, math.inf)]
        beat = heartbeat_seconds(self._torch)
        if signal_at is not None and beat is not None:
            ways.append(signal_at + beat + COORDINATION_SECONDS)
        earliest = min(ways)
        return earliest if earliest < math.inf else self._stop.at + self._spec.operator_seconds

    def _dumps(self, signal_at: float | None, ends: dict[int, float]) -> dict[int, float]:
        if signal_at is None:
            return {}
        found = {}
        first = min(self._messages, key=_order).rank
        for rank in self._ranks():
            heard = signal_at if rank == first else signal_at + self._rng.random()
            written = heard + self._rng.uniform(0.1, _LONGEST_DUMP_SECONDS)
            name = "dump_signal" if rank == first else "dump_observed"
            self._say(heard, rank, name, **self._position(rank))
            if written < ends[rank] and self._answers(rank):
                self._say(written, rank, "dump_written")
                found[rank] = written
        return found

    def _answers(self, rank: int) -> bool:
        happening = self._stop.happening
        return not (isinstance(happening, Died) and happening.rank == rank)

    def _last_words(self, by_launcher: dict[int, float]) -> None:
        """Of those that end by themselves; and what the launcher of their node says then."""
        happening = self._stop.happening
        for rank, end in self._own_ends.items():
            died = isinstance(happening, Died) and happening.rank == rank
            code = happening.exit_code if died and isinstance(happening, Died) else _ABORTED
            if not died:
                self._say(end - 0.005, rank, "taking_down")
            self._say(end, rank, "worker_failed", code=code, by=self._spec.software.launcher)
        for rank, end in by_launcher.items():
            if end < self._own_ends.get(rank, math.inf):
                self._say(end - 0.002, rank, "worker_closed")


def _order(message: Message) -> tuple[float, int]:
    return message.at, message.rank
