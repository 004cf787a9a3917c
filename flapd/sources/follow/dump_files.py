"""DumpFiles: flight recorders' dumps, read as they are written, and where their jobs stand."""

import os
import queue
import re
import threading
import time
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from flapd.core.job.dump import Dump, Entry, dump_of, standings, timeouts_seconds
from flapd.model.errors import FlapdError
from flapd.model.observation import DumpsRead
from flapd.model.times import SECOND_NS
from flapd.sources.dumps import LARGEST_FILE_BYTES, plain_data
from flapd.sources.follow.regular import read_bounded

POLL_NS = SECOND_NS
QUIET_POLL_NS = 4 * SECOND_NS
"""More, of one that was taken."""
MOST_DUMPS = 128
"""Of one job."""
MOST_JOBS = 16
MOST_ENTRIES = 1000
"""That are done, and as many that are not, of each dump: the others tell nothing new."""
MOST_STANDINGS = 16
LARGEST_MESSAGE_BYTES = 96 * 1024
_MOST_WAITING = 2
_RANK = re.compile(r"(\d{1,7})(?:\.(?:json|pkl|pickle))?$", re.ASCII)


class Written(msgspec.Struct, frozen=True):
    """A dump's content; the rank by its file's name."""

    name: str
    owner: int
    job: str | None
    """None: nobody says whose it is."""
    rank: int | None
    content: bytes


class DumpFile:
    """One file; each time it was written anew and is quiet, it is taken."""

    def __init__(
        self,
        name: str,
        open_it: Callable[[], int],
        take: Callable[[Written], bool],
        *,
        is_old: bool,
        job: str | None = None,
        rank: int | None = None,
    ) -> None:
        """`take` says False where it has no room now. `is_old`: what is in it now is no news."""
        self.name = name
        self.due_ns = 0
        self.is_over = False
        self._open = open_it
        self._take = take
        self._job = job
        self._rank = rank
        self._is_old = is_old
        self._taken: tuple[int, int, int] | None = None
        self._seen: tuple[int, int, int] | None = None

    def turn(self) -> None:
        self.due_ns = time.monotonic_ns() + POLL_NS
        try:
            fd = self._open()
        except FileNotFoundError:  # it will be written anew, at the next fault
            self._seen, self._is_old = None, False
            return
        try:
            self._look(fd)
        finally:
            os.close(fd)
        if self._seen == self._taken:
            self.due_ns += QUIET_POLL_NS

    def close(self) -> None:
        """It holds nothing."""

    def _look(self, fd: int) -> None:
        status = os.fstat(fd)
        now = status.st_ino, status.st_size, status.st_mtime_ns
        is_quiet, self._seen = now == self._seen, now
        if self._is_old:
            self._taken, self._is_old = now, False
        if now == self._taken or not is_quiet or status.st_size == 0:
            return
        content = read_bounded(fd, LARGEST_FILE_BYTES)
        if content is None:
            self._taken = now
            raise OSError(0, f"it is larger than {LARGEST_FILE_BYTES // 1024 // 1024} MiB")
        if self._take(self._written(status.st_uid, content)):
            self._taken = now

    def _written(self, owner: int, content: bytes) -> Written:
        found = _RANK.search(self.name)
        rank = self._rank if self._rank is not None or found is None else int(found[1])
        return Written(self.name, owner, self._job, rank, content)


class DumpDesk:
    """Takes dumps apart, in a thread of its own since that takes seconds, and tells of jobs."""

    def __init__(
        self,
        job_of: Callable[[Written], str | None],
        tell: Callable[[DumpsRead], None],
        note: Callable[[str, str | None], None],
    ) -> None:
        """`note` gets what cannot be read and why; None: it can be."""
        self.read = 0
        self._job_of = job_of
        self._tell = tell
        self._note = note
        self._waiting: queue.Queue[Written] = queue.Queue(_MOST_WAITING)
        self._dumps: dict[str | None, dict[int, Dump]] = {}
        threading.Thread(target=self._run, name="dumps", daemon=True).start()

    def take(self, written: Written) -> bool:
        try:
            self._waiting.put_nowait(written)
        except queue.Full:
            return False
        return True

    def _run(self) -> None:
        while True:
            written = self._waiting.get()
            try:
                self._read(written)
            except FlapdError as error:
                self._note(f"dump {written.name}", str(error))
            else:
                self._note(f"dump {written.name}", None)
                self.read += 1
            del written  # its content is not kept while the next one is waited for

    def _read(self, written: Written) -> None:
        if written.rank is None:
            raise FlapdError("the name of its file does not end with a rank")
        dump = _shortened(dump_of(plain_data(written.content)))
        self._add(self._job_of(written), written.rank, dump)

    def _add(self, job: str | None, rank: int, dump: Dump) -> None:
        dumps = self._dumps.pop(job, {})
        self._dumps[job] = dumps
        dumps[rank] = dump
        if len(dumps) > MOST_DUMPS:
            del dumps[next(iter(dumps))]
        if len(self._dumps) > MOST_JOBS:
            del self._dumps[next(iter(self._dumps))]
        self._tell(dumps_read(job, dumps))


def dumps_read(job: str | None, dumps: dict[int, Dump]) -> DumpsRead:
    """What is longer than passes the link loses its youngest standings."""
    timeouts = {seconds for dump in dumps.values() for seconds in timeouts_seconds(dump)}
    told = tuple(standings(dumps.items())[:MOST_STANDINGS])
    while True:
        read = DumpsRead(job, told, tuple(sorted(timeouts)[:MOST_STANDINGS]), time.monotonic_ns())
        if not told or len(msgspec.msgpack.encode(read)) <= LARGEST_MESSAGE_BYTES:
            return read
        told = told[:-1]


def _shortened(dump: Dump) -> Dump:
    done = [entry for entry in dump.entries if entry.is_done]
    waiting = [entry for entry in dump.entries if not entry.is_done]
    kept: list[Entry] = [*done[-MOST_ENTRIES:], *waiting[:MOST_ENTRIES]]
    return replace(dump, entries=kept)
