"""OpenLog: one file that grows, read in order for as long as it is the same file."""

import os
import time

from flapd.core.job.clock import Clock
from flapd.core.job.sieve import Sieve
from flapd.core.job.stream import LogStream
from flapd.model.finding import Finding
from flapd.sources.follow.position import Mark, Position, mark_at

CHUNK_BYTES = 64 * 1024
"""Nothing else runs in this process while one is looked through."""


class OpenLog:
    """Takes over a descriptor; OSError as reading."""

    def __init__(
        self,
        fd: int,
        name: str,
        scope: str,
        sieve: Sieve,
        *,
        offset: int = 0,
        generation: int = 0,
        is_live: bool = False,
    ) -> None:
        """`scope` is of those who see the same file; "" where all nodes do.

        `is_live`: what is in it was written just now.
        """
        status = os.fstat(fd)
        self.fd = fd
        self.name = name
        self.inode = status.st_ino
        self.key = status.st_dev, status.st_ino
        self.generation = generation
        self.read_until = offset
        self._size = offset
        self._sieve = sieve
        self._scope = scope
        self._backlog_until = 0 if is_live else status.st_size
        """What was there before us arrived at some time before its last change."""
        self._changed: tuple[int, int] | None = None
        self._mark = mark_at(fd, offset)
        """At the end of what was told: a line that is not complete is read again elsewhere."""
        self._read_ns = time.time_ns()
        self._stream, self._unknown_told = self._new_stream(offset), 0

    def _new_stream(self, offset: int) -> LogStream:
        scope = f"{self.inode}"
        if self._scope:  # nodes do not agree on how often they have seen it emptied
            scope = f"{self._scope}/{scope}/{self.generation}"
        return LogStream(self.name, scope=scope, offset=offset, sieve=self._sieve)

    def position(self, key: str) -> Position:
        """Of the file that is known by this key."""
        return Position(key, self._read_ns, self.inode, self._mark, self.generation)

    @property
    def behind_bytes(self) -> int:
        """There were so many more when it was read last."""
        return max(0, self._size - self.read_until)

    def has_changed(self) -> bool:
        """Since it was last read to its end."""
        status = os.fstat(self.fd)
        return (status.st_size, status.st_mtime_ns) != self._changed

    def is_rewritten(self) -> bool:
        """It was emptied since, whether or not it has grown past where we were."""
        return os.fstat(self.fd).st_size < self.read_until or not self._mark.is_in(self.fd)

    @property
    def was_empty(self) -> bool:
        """When it was looked at last; what came and went since left no trace in it."""
        return self.read_until == 0 and self._changed is not None

    def begin_anew(self) -> list[Finding]:
        """Once it was rewritten; tells what the end of its last line said, which never came."""
        found = self.finish()
        self.generation += 1
        self.read_until = self._backlog_until = 0
        self._mark = Mark()
        self._stream, self._unknown_told = self._new_stream(0), 0
        return found

    def read(self, most_bytes: int) -> tuple[list[Finding], int]:
        """What the next bytes tell, and how many there were; fewer than asked for at the end."""
        status, begin = os.fstat(self.fd), self.read_until
        self._read_ns, self._size = time.time_ns(), status.st_size
        found: list[Finding] = []
        while self.read_until - begin < most_bytes:
            data = os.pread(self.fd, CHUNK_BYTES, self.read_until)
            if not data:
                self._changed = (status.st_size, status.st_mtime_ns)
                break
            if data.startswith(b"\0") and self._skip_hole(status.st_size):
                continue
            found += self._stream.feed(data, self._clock(status))
            self.read_until += len(data)
        if self.read_until > begin:
            self._mark = mark_at(self.fd, self._stream.offset)
        return found, self.read_until - begin

    def _skip_hole(self, size: int) -> bool:
        """A writer goes on where it was in a file that was truncated: before that is nothing."""
        try:
            next_data = os.lseek(self.fd, self.read_until, os.SEEK_DATA)
        except OSError:  # ENXIO: there is none any more
            next_data = size
        if next_data <= self.read_until:
            return False
        self.read_until = next_data
        self._stream, self._unknown_told = self._new_stream(next_data), 0
        return True

    def _clock(self, status: os.stat_result) -> Clock:
        offset_seconds = time.localtime().tm_gmtoff
        if self.read_until < self._backlog_until:
            return Clock(reference_ns=status.st_mtime_ns, utc_offset_seconds=offset_seconds)
        return Clock(arrived_ns=time.time_ns(), utc_offset_seconds=offset_seconds)

    def new_unknown_warnings(self) -> int:
        """Of NCCL, in forms that are not known; since it was asked last."""
        new = self._stream.unknown_warnings - self._unknown_told
        self._unknown_told += new
        return new

    def finish(self) -> list[Finding]:
        """What its last line tells, where its end never came."""
        return self._stream.finish(Clock(arrived_ns=time.time_ns()))

    def close(self) -> None:
        os.close(self.fd)
