"""FollowedFile: a log by its name, through rotation, truncation and replacement.

By polling: inotify tells nothing of what other nodes write on a shared file system. A file that
took another's name begins at its start, and the one that had the name is read until it is quiet,
since its writer may not know yet. What was rotated between two looks is found by its name, which
begins with that of the log; where it holds a copy of what was read, reading goes on there.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from flapd.core.job.sieve import Sieve
from flapd.model.finding import Finding
from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.sources.follow.open_log import OpenLog
from flapd.sources.follow.position import Position
from flapd.sources.follow.regular import open_regular
from flapd.sources.follow.rotated import rotated_since

POLL_NS = 250 * MILLISECOND_NS
_QUIET_POLLS_NS = ((3600 * SECOND_NS, 5 * SECOND_NS), (60 * SECOND_NS, SECOND_NS))
"""Quiet for so long: looked at so seldom."""
AT_ONCE_BYTES = 8 * 1024 * 1024
QUIET_NS = 10 * SECOND_NS
"""A file that was rotated away and did not grow for so long is done with."""
GONE_NS = 60 * SECOND_NS
POSITION_EVERY_NS = SECOND_NS
_SCANS = 3


class Around(Protocol):
    """What following one file needs of all else."""

    sieve: Sieve

    def known(self, key: str, file: tuple[int, int]) -> Position | None: ...
    def claim(self, log: OpenLog, by: "FollowedFile") -> bool:
        """False where the same file is followed under another name."""

    def release(self, log: OpenLog, position: Position) -> None: ...
    def found(self, by: "FollowedFile", findings: list[Finding]) -> None: ...
    def at(self, position: Position) -> None: ...
    def count(self, read_bytes: int, unknown_warnings: int) -> None: ...


class _Leaving:
    """A log under a name that is its own no more."""

    def __init__(self, log: OpenLog) -> None:
        self.log = log
        self.quiet_since_ns = time.monotonic_ns()


class FollowedFile:
    """Has its turns in one thread at a time; what a turn cannot read is an OSError."""

    def __init__(
        self,
        name: str,
        key: str,
        around: Around,
        open_it: Callable[[], int],
        *,
        scope: str = "",
        path: Path | None = None,
        is_new: bool = False,
        backlog_bytes: int = 0,
        job: str | None = None,
    ) -> None:
        """`key`: tells it from others that are shown by the same name, as containers have.

        `scope`: of those who see it; "" where all nodes do.
        `path`: where it may be replaced by another file; None: it is this one for ever.

        `is_new`: it was not there a moment ago. `backlog_bytes`: of another that was never read
        so much is read, unless it is longer.
        """
        self.name = name
        self.key = key
        self.jobs: set[str] = set() if job is None else {job}
        self.due_ns = 0
        self.is_over = False
        self._around = around
        self._open = open_it
        self._scope = scope
        self.path = path
        self._is_new = is_new
        self._backlog_bytes = backlog_bytes
        self._log: OpenLog | None = None
        self._leaving: list[_Leaving] = []
        self._grew_ns = time.monotonic_ns()
        self._gone_since_ns: int | None = None
        self._position_at_ns = 0
        self._told_jobs: set[str] = set()

    @property
    def job(self) -> str | None:
        """None where several jobs write to it, or nobody knows."""
        jobs = list(self.jobs)
        return jobs[0] if len(jobs) == 1 else None

    @property
    def behind_bytes(self) -> int:
        """What was there at the last turn and is not read yet."""
        logs = [leaving.log for leaving in self._leaving]
        logs += [] if self._log is None else [self._log]
        return sum(log.behind_bytes for log in logs)

    def turn(self) -> None:
        """Reads what is new, up to a bound."""
        more = self._drain()
        if self._log is None:
            self._log = self._opened()
        elif self.path is not None and self._is_replaced(self.path, self._log):
            self._follow_successor(self._log)
            more = True
        if self._log is not None:
            more |= self._read(self._log)
        now_ns = time.monotonic_ns()
        self._tell_position(now_ns)
        if self.path is None and not self.jobs and now_ns - self._grew_ns > GONE_NS:
            self.is_over = True
        self.due_ns = now_ns if more else now_ns + self._pause_ns(now_ns)

    def close(self) -> None:
        """Nothing of it is read any more."""
        logs = [each.log for each in self._leaving] + ([] if self._log is None else [self._log])
        self._leaving, self._log = [], None
        for log in logs:
            self._end(log)

    def _pause_ns(self, now_ns: int) -> int:
        quiet_ns = 0 if self._leaving else now_ns - self._grew_ns
        return next((pause for least, pause in _QUIET_POLLS_NS if quiet_ns > least), POLL_NS)

    def _opened(self) -> OpenLog | None:
        """Where reading ended last, if that is known."""
        try:
            fd = self._open()
        except FileNotFoundError:
            self._note_gone()
            return None
        status = os.fstat(fd)
        known = self._around.known(self.key, (status.st_dev, status.st_ino))
        if known is None:
            is_read = self._is_new or status.st_size <= self._backlog_bytes
            offset = 0 if is_read else status.st_size
            return self._claimed(self._new_log(fd, offset, is_live=self._is_new))
        if known.inode == status.st_ino and known.mark.is_in(fd):
            return self._claimed(self._new_log(fd, known.mark.offset, known.generation))
        log = self._new_log(fd, 0, known.generation + 1)
        self._find_earlier(known, log, is_live=False)
        return self._claimed(log)

    def _new_log(
        self, fd: int, offset: int, generation: int = 0, *, is_live: bool = False
    ) -> OpenLog:
        sieve = self._around.sieve
        return OpenLog(
            fd,
            self.name,
            self._scope,
            sieve,
            offset=offset,
            generation=generation,
            is_live=is_live,
        )

    def _claimed(self, log: OpenLog) -> OpenLog | None:
        if self._around.claim(log, self):
            self._gone_since_ns = None
            return log
        log.close()
        self.is_over = True
        return None

    def _note_gone(self) -> None:
        now_ns = time.monotonic_ns()
        self._gone_since_ns = self._gone_since_ns or now_ns
        self.is_over = now_ns - self._gone_since_ns > GONE_NS

    def _is_replaced(self, path: Path, log: OpenLog) -> bool:
        """Whether the name stands for another file now; not while it stands for none."""
        try:
            status = path.stat()
        except FileNotFoundError:
            self._find_earlier(log.position(self.key), log, is_live=True)
            if log.has_changed():
                self._gone_since_ns = None
            else:
                self._note_gone()
            return False
        self._gone_since_ns = None
        return (status.st_dev, status.st_ino) != log.key

    def _follow_successor(self, old: OpenLog) -> None:
        try:
            fd = self._open()
        except FileNotFoundError:
            return  # it was replaced once more; there is a next turn
        self._leaving.append(_Leaving(old))
        log = self._new_log(fd, 0, is_live=True)
        self._find_earlier(old.position(self.key), log, is_live=True)
        self._log = self._claimed(log)

    def _find_earlier(self, before: Position, log: OpenLog, *, is_live: bool) -> bool:
        """Files that had the name since then are read too; True where one goes on from there."""
        goes_on = False
        for _ in range(_SCANS if self.path is not None else 0):
            assert self.path is not None
            try:
                for neighbour in rotated_since(self.path, before.read_ns):
                    fd = open_regular(neighbour, follow=False)
                    goes_on |= self._leave_too(fd, before, log, is_live=is_live)
            except FileNotFoundError:
                continue  # it got its next name between the look and this
            break
        return goes_on

    def _leave_too(self, fd: int, before: Position, log: OpenLog, *, is_live: bool) -> bool:
        status = os.fstat(fd)
        known = self._around.known("", (status.st_dev, status.st_ino))
        goes_on = before.mark.offset > 0 and before.mark.is_in(fd)
        if goes_on or known is None or not known.mark.is_in(fd):
            known = before
        offset = known.mark.offset if goes_on or known is not before else 0
        earlier = self._new_log(fd, offset, known.generation, is_live=is_live)
        if earlier.key == log.key or not self._around.claim(earlier, self):
            earlier.close()
            return False
        self._leaving.append(_Leaving(earlier))
        return goes_on

    def _drain(self) -> bool:
        """Reads on in what was rotated away; True where there is more at once."""
        more = False
        for leaving in list(self._leaving):
            if leaving.log.has_changed():
                leaving.quiet_since_ns = time.monotonic_ns()
                more |= self._take(leaving.log)
            elif time.monotonic_ns() - leaving.quiet_since_ns > QUIET_NS:
                self._leaving.remove(leaving)
                self._end(leaving.log)
        return more

    def _end(self, log: OpenLog) -> None:
        self._around.found(self, log.finish())
        self._around.release(log, log.position(self.key))
        log.close()

    def _read(self, log: OpenLog) -> bool:
        """True where there is more at once."""
        if not log.has_changed():
            return False
        if log.was_empty:
            self._find_earlier(log.position(self.key), log, is_live=True)
        elif log.is_rewritten():
            goes_on = self._find_earlier(log.position(self.key), log, is_live=True)
            last = log.begin_anew()
            if not goes_on:
                self._around.found(self, last)
        self._grew_ns = time.monotonic_ns()
        return self._take(log)

    def _take(self, log: OpenLog) -> bool:
        findings, read_bytes = log.read(AT_ONCE_BYTES)
        self._around.found(self, findings)
        self._around.count(read_bytes, log.new_unknown_warnings())
        return read_bytes >= AT_ONCE_BYTES

    def _tell_position(self, now_ns: int) -> None:
        """Not while an earlier part of it is still being read."""
        is_due = now_ns - self._position_at_ns >= POSITION_EVERY_NS
        if self._log is None or self._leaving or not is_due:
            return
        if self._position_at_ns <= self._grew_ns or self._told_jobs != self.jobs:
            self._position_at_ns, self._told_jobs = now_ns, set(self.jobs)
            jobs = tuple(sorted(self._told_jobs))
            self._around.at(replace(self._log.position(self.key), jobs=jobs))
