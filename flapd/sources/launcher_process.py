"""The agent's side of its launcher, where what it was given is to pass by it."""

import os
import socket
import threading
import time
from errno import ECONNRESET

import structlog

from flapd.sources.child_link import make_link
from flapd.sources.launcher import LONGEST_BYTES
from flapd.sources.processes import kill, start_time
from flapd.sources.starting import Child, start_own

ANSWERS_WITHIN_SECONDS = 5.0
END_WITHIN_SECONDS = 0.5
_LOOK_EVERY_SECONDS = 0.01

_log = structlog.get_logger("flapd.launcher")


class LaunchedChild:
    """One that the launcher started; known by its number and its start."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._started = start_time(pid)

    def kill(self) -> None:
        if not self.has_ended():
            kill(self.pid)

    def has_ended(self, within_seconds: float = 0.0) -> bool:
        deadline = time.monotonic() + within_seconds
        while self._started is not None and start_time(self.pid) == self._started:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_EVERY_SECONDS)
        return True


class LauncherProcess:
    """Runs from now on until we end; to be made before privileges are laid down."""

    def __init__(self) -> None:
        self._link, theirs = make_link()
        with theirs:
            self._launcher = start_own("flapd.sources.launcher", theirs)
        self._link.settimeout(ANSWERS_WITHIN_SECONDS)
        self._lock = threading.Lock()

    def start_child(self, module: str, link: socket.socket) -> Child:
        """From any thread. Where there is no launcher any more the child has less than others."""
        with self._lock:
            try:
                told = self._ask(module, link)
            except OSError as error:
                self._link.close()
                _log.error("launcher_gone", error=str(error), starts_without_privileges=module)
                return start_own(module, link)
        if not told.isdecimal():
            raise OSError(None, f"it could not be started: {told}")
        return LaunchedChild(int(told))

    def stop(self) -> bool:
        """Ends the launcher, not what it started; False where it does not end soon."""
        self._link.close()
        return self._launcher.has_ended(END_WITHIN_SECONDS)

    def _ask(self, module: str, link: socket.socket) -> str:
        socket.send_fds(self._link, [module.encode()], [link.fileno()])
        told = self._link.recv(LONGEST_BYTES).decode()
        if not told:
            raise ConnectionError(ECONNRESET, os.strerror(ECONNRESET))
        return told
