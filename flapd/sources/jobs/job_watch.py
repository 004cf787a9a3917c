"""JobWatch: tells of jobs as they come, change and end, and has their logs followed."""

import os
import select
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from flapd.model.job import JobFound
from flapd.model.observation import JobSeen, JobsPresent
from flapd.model.times import SECOND_NS
from flapd.sources.follow.following import Following
from flapd.sources.follow.mounts import mount_numbered, mounts_in
from flapd.sources.follow.position import Position
from flapd.sources.follow.regular import open_regular
from flapd.sources.jobs.attempts import Attempts, SupersededError
from flapd.sources.jobs.finder import Finder, Job, Look
from flapd.sources.jobs.procfs import ProcFs
from flapd.sources.jobs.rank_logs import OpenFile
from flapd.sources.jobs.rank_process import RankProcess

HANGS_AFTER_NS = 5 * SECOND_NS
BACKLOG_BYTES = 64 * 1024 * 1024
"""Of a job's log that was never read: how it began, unless that is long ago."""
AFTER_ITS_END_NS = 120 * SECOND_NS
"""The launcher reports in the same log what ended the ranks."""
TOGETHER_SECONDS = 0.1
"""Ranks die together."""
_FAILURE = "processes"

_DUMP_PREFIXES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""Before the rank's number (DebugInfoWriter in ProcessGroupNCCL.cpp)."""

Tell = Callable[[JobSeen | JobsPresent], None]


class _Dumper(NamedTuple):
    rank: int | None
    owner: int
    file: str | None
    """Where it was told to write its dump."""


class JobWatch:
    """Looks in a thread of its own; `look` is called all the time by another."""

    def __init__(
        self,
        finder: Finder,
        proc: ProcFs,
        attempts: Attempts,
        following: Following,
        tell: Tell,
        *,
        every_seconds: float,
        pods: Path,
        left: Iterable[Position] = (),
    ) -> None:
        """`left`: how far logs were read when the reader before this one ended."""
        self.jobs: tuple[Job, ...] = ()
        """That run now."""
        self._finder = finder
        self._proc = proc
        self._attempts = attempts
        self._following = following
        self._tell = tell
        self._every_seconds = every_seconds
        self._pods = pods
        self._told: dict[str, JobFound] = {}
        self._told_present: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._began_ns: dict[str, int] = {}
        self._dumpers: dict[str, set[_Dumper]] = {}
        """By job, also of ranks that have ended."""
        self._ended_ns: dict[str, int] = {}
        self._followed: dict[str, set[tuple[int | None, str]]] = {}
        self._left = list(left)
        self._asks = False
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def start(self) -> None:
        threading.Thread(target=self._run, name="jobs", daemon=True).start()

    def ask_queue_pairs(self) -> None:
        """At the next look, which is now."""
        self._asks = True
        os.eventfd_write(self._wake, 1)

    def look(self) -> None:
        """Where looking into a process hangs, looks go on without it."""
        pid = self._attempts.held_up_by(HANGS_AFTER_NS)
        if pid is not None:
            self._attempts.give_up(pid)
            self._following.note_failure(f"process {pid}", "looking into it hangs")
            self.start()

    def began_ns(self, job: str) -> int | None:
        return self._began_ns.get(job)

    def job_of(self, rank: int | None, owner: int, file: str) -> str | None:
        """The only one, of those that run or ended not long ago, whose rank may have written it."""
        had = {
            job: [one.file for one in dumpers if (one.rank, one.owner) == (rank, owner)]
            for job, dumpers in self._dumpers.copy().items()
        }
        told = [job for job, files in had.items() if file in files]
        found = told or [job for job, files in had.items() if files]
        return found[0] if len(found) == 1 else None

    def _run(self) -> None:
        self._attempts.begin()
        with suppress(SupersededError):
            while True:
                self._look_once()
                self._wait()

    def _look_once(self) -> None:
        asks, self._asks = self._asks, False
        try:
            look = self._finder.look(ask_queue_pairs=asks)
        except OSError as error:
            self._following.failed(_FAILURE, error)
            return
        self._following.worked(_FAILURE)
        self.jobs = look.jobs
        for job in look.jobs:
            began = [rank.started_unix_ns for rank in job.found.ranks]
            self._began_ns[job.found.job] = min(began)
            dumpers = self._dumpers.get(job.found.job, set())
            self._dumpers[job.found.job] = dumpers | {_dumper(rank) for rank in job.ranks}
            self._tell_job(job.found)
            self._follow(job)
        self._tell_present(look)
        running = {job.found.job for job in look.jobs}
        self._read_what_was_left(running)
        self._end_jobs(running)

    def _tell_job(self, found: JobFound) -> None:
        if self._told.get(found.job) != found:
            self._told[found.job] = found
            self._tell(JobSeen(found, time.monotonic_ns()))

    def _tell_present(self, look: Look) -> None:
        present = tuple(sorted(job.found.job for job in look.jobs)), look.blind_to
        if present != self._told_present:
            self._told_present = present
            self._tell(JobsPresent(*present, time.monotonic_ns()))

    def _read_what_was_left(self, running: set[str]) -> None:
        """The last words of jobs that ended while nobody read their logs."""
        left, self._left = self._left, []
        for position in left:
            for job in set(position.jobs) - running:
                if self._following.add_left(position, job):
                    self._ended_ns[job] = time.monotonic_ns()

    def _end_jobs(self, running: set[str]) -> None:
        """Their logs are theirs for a while yet."""
        now_ns = time.monotonic_ns()
        for job in [job for job in self._told if job not in running]:
            del self._told[job]
            self._ended_ns[job] = now_ns
        for job in running:
            self._ended_ns.pop(job, None)
        for job, ended_ns in list(self._ended_ns.items()):
            if now_ns - ended_ns > AFTER_ITS_END_NS:
                del self._ended_ns[job]
                for known in (self._began_ns, self._dumpers, self._followed):
                    known.pop(job, None)
                self._following.end_job(job)

    def _follow(self, job: Job) -> None:
        followed = self._followed.setdefault(job.found.job, set())
        for file in job.files:
            if (file.mount, file.path) not in followed and self._follow_file(job, file):
                followed.add((file.mount, file.path))
        for pod in job.pods:
            if (None, pod) not in followed:
                followed.add((None, pod))
                pattern = str(self._pods / f"*_{pod}" / "*" / "*.log")
                self._following.add_pattern(pattern, job.found.job, BACKLOG_BYTES)

    def _follow_file(self, job: Job, file: OpenFile) -> bool:
        try:
            mounts = mounts_in(self._proc.mounts(file.pid))
        except OSError:
            return False
        return self._following.add_file(
            file.path,
            partial(open_regular, self._proc.descriptor(file.pid, file.descriptor)),
            mount_numbered(file.mount or 0, mounts),
            job=job.found.job,
            backlog_bytes=BACKLOG_BYTES,
        )

    def _wait(self) -> None:
        """Until it is time again, somebody asks, or a rank ends."""
        waiting = select.poll()
        waiting.register(self._wake, select.POLLIN)
        with ExitStack() as closing:
            for pid in self._pids():
                with suppress(OSError):  # it has ended, or this kernel has none
                    ending = os.pidfd_open(pid)
                    closing.callback(os.close, ending)
                    waiting.register(ending, select.POLLIN)
            happened = waiting.poll(self._every_seconds * 1000)
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        if happened:
            time.sleep(TOGETHER_SECONDS)

    def _pids(self) -> Iterable[int]:
        """Of this kernel: those of another root are others here."""
        if self._proc.root != Path("/proc"):
            return ()
        return (rank.pid for job in self.jobs for rank in job.ranks)


def _dumper(process: RankProcess) -> _Dumper:
    environment, rank = process.environment or {}, process.membership.rank
    prefix = next((environment[name] for name in _DUMP_PREFIXES if name in environment), None)
    file = None if prefix is None or rank is None else f"{prefix}{rank}"
    return _Dumper(rank, process.owner, file)


def has_pod_logs(pods: Path, uid: str) -> bool:
    try:
        return any(name.endswith(f"_{uid}") for name in os.listdir(pods))  # noqa: PTH208
    except OSError:
        return False
