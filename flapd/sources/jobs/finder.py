"""Finder: which jobs run on this node, by one look after the other at its processes."""

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from flapd.model.job import JobFound, Rank
from flapd.sources.jobs.attempts import Attempts
from flapd.sources.jobs.job_record import JobRecord, why_blind
from flapd.sources.jobs.membership import gpus_of
from flapd.sources.jobs.procfs import ProcFs
from flapd.sources.jobs.queue_pairs import QueuePairs
from flapd.sources.jobs.rank_logs import OpenFile, logs_of
from flapd.sources.jobs.rank_process import RankProcess
from flapd.sources.jobs.ranks import Ranks

MOST_JOBS = 64
MOST_RANKS = 256
"""Of one job on one node."""
MOST_BLIND = 16
_NO_RANK = 1 << 31


class Job(msgspec.Struct, frozen=True):
    """A job with what only the reader needs of it."""

    found: JobFound
    ranks: tuple[RankProcess, ...]
    files: tuple[OpenFile, ...]
    """Logs that its ranks have open."""
    pods: frozenset[str]
    """UIDs of its pods here."""


class Look(msgspec.Struct, frozen=True):
    jobs: tuple[Job, ...]
    blind_to: tuple[str, ...]


class Finder:
    """Used from one thread at a time."""

    def __init__(
        self,
        proc: ProcFs,
        attempts: Attempts,
        queue_pairs: Callable[[], QueuePairs],
        has_pod_logs: Callable[[str], bool],
        *,
        discover_logs: bool,
    ) -> None:
        """`queue_pairs`: OSError where the kernel does not tell. `has_pod_logs` of a pod's UID."""
        self._proc = proc
        self._attempts = attempts
        self._queue_pairs = queue_pairs
        self._has_pod_logs = has_pod_logs
        self._discover_logs = discover_logs
        self._ranks = Ranks(proc, attempts)
        self._records: dict[str, JobRecord] = {}
        self._host = socket.gethostname()

    def look(self, *, ask_queue_pairs: bool = False) -> Look:
        """`ask_queue_pairs`: also those of jobs of which they are known."""
        by_job = self._by_job()
        self._records = {
            job: self._records.get(job) or JobRecord(self._proc, self._attempts) for job in by_job
        }
        for job, ranks in by_job.items():
            with suppress(OSError):
                self._records[job].look(ranks[0])
        self._look_at_queue_pairs(by_job, everywhere=ask_queue_pairs)
        jobs = tuple(self._job(job, ranks) for job, ranks in by_job.items())
        return Look(jobs, self._ranks.blind_to)

    def _by_job(self) -> dict[str, list[RankProcess]]:
        """The ranks of each in their order."""
        found: dict[str, list[RankProcess]] = {}
        for rank in sorted(self._ranks.look(), key=_order):
            name = rank.membership.job or f"process-{rank.ancestors[0]}"
            ranks = found.setdefault(name, [])
            if len(ranks) < MOST_RANKS:
                ranks.append(rank)
        return dict(list(found.items())[:MOST_JOBS])

    def _look_at_queue_pairs(
        self, by_job: dict[str, list[RankProcess]], *, everywhere: bool
    ) -> None:
        asking = {
            job: record
            for job, record in self._records.items()
            if everywhere or record.wants_queue_pairs
        }
        if not asking:
            return
        try:
            pairs = self._queue_pairs()
        except OSError as error:
            pairs = QueuePairs({}, {}, (f"the ports it uses: {why_blind(error)}",))
        for job, record in asking.items():
            record.asked()
            record.take(pairs, by_job[job])

    def _job(self, job: str, ranks: list[RankProcess]) -> Job:
        record, lead = self._records[job], ranks[0]
        files, unreadable = self._logs(ranks)
        pods = frozenset(rank.membership.pod for rank in ranks if rank.membership.pod is not None)
        environment = lead.environment
        devices = len(frozenset[str]().union(*(rank.gpus for rank in ranks)))
        found = JobFound(
            job=job,
            scheduler=lead.membership.scheduler,
            ranks=tuple(self._rank(rank) for rank in ranks),
            world_size=lead.membership.world_size,
            gpus=gpus_of(environment or {}, len(ranks), devices),
            ports=dict.fromkeys(sorted(record.ports), "queue_pair"),
            queue_pairs_in_error=record.in_error,
            environment=environment,
            conf_files=record.conf_files,
            torch=record.torch,
            nccl=record.nccl,
            blind_to=tuple(self._blind_to(ranks, record, unreadable, pods))[:MOST_BLIND],
        )
        return Job(found, tuple(ranks), tuple(files), pods)

    def _logs(self, ranks: list[RankProcess]) -> tuple[list[OpenFile], dict[str, int]]:
        """Files, and what cannot be read with the number of ranks whose output goes there."""
        files: dict[tuple[int | None, str], OpenFile] = {}
        unreadable: dict[str, int] = {}
        for rank in ranks if self._discover_logs else []:
            try:
                logs = logs_of(self._proc, rank, self._host)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            except OSError as error:
                what = f"what it writes to: {why_blind(error)}"
                unreadable[what] = unreadable.get(what, 0) + 1
                continue
            for file in logs.files:
                files.setdefault((file.mount, file.path), file)
            for what in logs.unreadable:
                unreadable[what] = unreadable.get(what, 0) + 1
        return list(files.values()), unreadable

    def _blind_to(
        self,
        ranks: list[RankProcess],
        record: JobRecord,
        unreadable: dict[str, int],
        pods: frozenset[str],
    ) -> Iterator[str]:
        if ranks[0].why_blind is not None:
            yield ranks[0].why_blind
        if not record.ports:
            yield record.why_no_ports
        if not any(map(self._has_pod_logs, pods)):
            for what, number in unreadable.items():
                yield f"{what} ({number} of {len(ranks)} ranks)"

    def _rank(self, process: RankProcess) -> Rank:
        environment = process.environment or {}
        in_container = process.inner_pid is not None
        name = environment.get("HOSTNAME", "") if in_container else self._host
        return Rank(
            rank=process.membership.rank,
            pid=process.pid,
            inner_pid=process.inner_pid,
            local_rank=process.membership.local_rank,
            host=name.partition(".")[0] or None,
            started_unix_ns=process.started_unix_ns,
        )


def _order(rank: RankProcess) -> tuple[int, int]:
    number = rank.membership.rank
    return (_NO_RANK if number is None else number, rank.pid)
