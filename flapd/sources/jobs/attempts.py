"""Attempts: looking into a process may hold up who looks; then somebody else goes on without it.

Reading the environment or the mappings waits for a lock of the process's memory, and a job's files
may lie on a server that does not answer. Who waits there cannot be called back.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class SupersededError(Exception):
    """Another thread has gone on meanwhile: nothing more is to be done or said."""


class HangsError(OSError):
    """Looking into this process held somebody up, and does still or may again."""

    def __init__(self) -> None:
        super().__init__(0, "looking into it hangs")


class Attempts:
    """Of the one thread that looks into processes, and of those that did before it."""

    def __init__(self) -> None:
        self.hanging: set[int] = set()
        """Pids that are left alone."""
        self._thread = 0
        self._now: tuple[int, int] | None = None

    def begin(self) -> None:
        """The calling thread is the one."""
        self._thread, self._now = threading.get_ident(), None

    @contextmanager
    def at(self, pid: int) -> Iterator[None]:
        """HangsError, SupersededError."""
        self._refuse_superseded()
        if pid in self.hanging:
            raise HangsError
        self._now = pid, time.monotonic_ns()
        try:
            yield
        finally:
            self._refuse_superseded()
            self._now = None

    def held_up_by(self, longer_than_ns: int) -> int | None:
        """The pid; asked by another thread."""
        now = self._now
        return now[0] if now is not None and time.monotonic_ns() - now[1] > longer_than_ns else None

    def give_up(self, pid: int) -> None:
        """Whoever looks into it does nothing more, and nobody looks into it again."""
        self.hanging.add(pid)
        self._thread, self._now = 0, None

    def forget(self, present: set[int]) -> None:
        self.hanging &= present

    def _refuse_superseded(self) -> None:
        if threading.get_ident() != self._thread:
            raise SupersededError
