"""The lock on a directory: one agent at a time."""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

import structlog

from flapd.model.errors import FlapdError
from flapd.store.files import make_directory

WAIT_SECONDS = 90.0
"""An agent that is being replaced needs a moment; longer than any stop of a service."""
_LOOK_EVERY_SECONDS = 0.1

_log = structlog.get_logger("flapd.lock")


class DirectoryLock:
    """Held until closed, or until the process ends in whatever way."""

    def __init__(self, directory: Path, setting: str, wait_seconds: float = WAIT_SECONDS) -> None:
        """Waits for the lock; FlapdError names who holds it, or why it cannot be had."""
        path = directory / "lock"
        try:
            make_directory(directory)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
            self._wait(path, setting, time.monotonic() + wait_seconds)
            with suppress(OSError):  # who holds it is a hint; a full disk must not keep us away
                os.ftruncate(self._fd, 0)
                os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise FlapdError(
                f"{setting}: {directory} cannot be written: {error.strerror}"
            ) from error

    def close(self) -> None:
        os.close(self._fd)

    def _wait(self, path: Path, setting: str, deadline: float) -> None:
        told = False
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(self._fd, 20, 0).decode("ascii", "replace").strip()
                if time.monotonic() >= deadline:
                    os.close(self._fd)
                    raise FlapdError(
                        f"another agent (process {holder}) holds {path}: stop it, or give "
                        f"this one its own {setting}"
                    ) from None
                if not told:
                    _log.warning("waiting_for_lock", path=str(path), holder=holder)
                    told = True
                time.sleep(_LOOK_EVERY_SECONDS)
            else:
                return
