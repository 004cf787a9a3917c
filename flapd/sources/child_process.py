"""ChildProcess: one child of the agent, listened to, and started again whenever it ends."""

import socket
import threading
import time
from contextlib import suppress
from typing import Any, Protocol

import structlog

from flapd.sources.child_link import make_link, send, send_if_room
from flapd.sources.processes import start_time
from flapd.sources.starting import Child, StartChild, start_own

SHORTEST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
WELL_AFTER_SECONDS = 10.0
"""A child that lived this long is started again without a growing pause."""
SILENT_SECONDS = 5.0
"""It says every second that it is here; one that does not, for this long, hangs."""
STARTS_WITHIN_SECONDS = 30.0
LOOK_EVERY_SECONDS = 1.0
END_WITHIN_SECONDS = 0.5


class Tasks(Protocol):
    """What a child is for."""

    def begins(self, pid: int, /) -> list[Any]:
        """What a new child is told first."""

    def hear(self, link: socket.socket, within_seconds: float) -> bool:
        """Takes what it tells; False once it has ended, TimeoutError where it tells nothing."""

    def buried(self, pid: int, /, *, is_gone: bool) -> None:
        """It was ended; where it cannot die it is left behind."""


class ChildProcess:
    """Runs `python -m MODULE --link N` for as long as the agent lives."""

    def __init__(
        self, name: str, module: str, tasks: Tasks, start_child: StartChild = start_own
    ) -> None:
        self.restarts = 0
        self._name = name
        self._module = module
        self._tasks = tasks
        self._start_child = start_child
        self._log = structlog.get_logger(f"flapd.{name}")
        self._stopping = threading.Event()
        self._replaced = False
        self._child: Child | None = None
        self._link: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def start(self) -> None:
        self._thread.start()

    def replace(self) -> None:
        """A fresh child takes over at once."""
        self._replaced = True
        self._end()

    def send(self, message: Any) -> bool:
        """From any thread, without waiting; False where the child does not get it."""
        link = self._link
        with suppress(OSError):  # no child now
            return link is not None and send_if_room(link, message)
        return False

    def stop(self) -> None:
        """Ends the child; one that cannot die is left behind."""
        self._stopping.set()
        self._end()
        self._thread.join(2 * END_WITHIN_SECONDS)

    def _run(self) -> None:
        pause_seconds = SHORTEST_PAUSE_SECONDS
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                self._live_once()
            except Exception:  # noqa: BLE001 - the one broad handler: a supervisor's
                if not self._stopping.is_set():
                    self._log.exception(f"{self._name}_failed")
            if self._replaced or self._stopping.is_set():
                self._replaced = False
                continue
            self.restarts += 1
            if time.monotonic() - started > WELL_AFTER_SECONDS:
                pause_seconds = SHORTEST_PAUSE_SECONDS
            self._log.warning(f"{self._name}_ended", pause_seconds=pause_seconds)
            self._stopping.wait(pause_seconds)
            pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)

    def _live_once(self) -> None:
        ours, theirs = make_link()
        with ours, theirs:
            child = self._start_child(self._module, theirs)
            theirs.close()
            self._child, self._link = child, ours
            try:
                if not self._stopping.is_set():  # else it may have come too late to be ended
                    self._talk(ours, child)
            finally:
                self._link = None
                self._bury(child)

    def _talk(self, link: socket.socket, child: Child) -> None:
        """Until it ends, is ended, or says nothing for too long."""
        with suppress(ConnectionError):
            for message in self._tasks.begins(child.pid):
                send(link, message)
            silent_until = time.monotonic() + STARTS_WITHIN_SECONDS
            while time.monotonic() < silent_until:
                try:
                    if not self._tasks.hear(link, LOOK_EVERY_SECONDS):
                        return
                except TimeoutError:
                    if start_time(child.pid) is None:
                        return  # killed, while a thread of it hangs and keeps the link open
                    continue
                silent_until = time.monotonic() + SILENT_SECONDS
            self._log.error(f"{self._name}_hangs", silent_seconds=SILENT_SECONDS)

    def _bury(self, child: Child) -> None:
        child.kill()
        self._tasks.buried(child.pid, is_gone=child.has_ended(END_WITHIN_SECONDS))

    def _end(self) -> None:
        """Its end of the link stays open for as long as it cannot die: ours is closed."""
        child, link = self._child, self._link
        if child is not None:
            child.kill()
        if link is not None:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
