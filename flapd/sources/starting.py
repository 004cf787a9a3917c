"""Starting: how a child process of the agent begins, is ended, and is waited for."""

import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Protocol


class Child(Protocol):
    """A process that runs, or has run."""

    @property
    def pid(self) -> int: ...
    def kill(self) -> None: ...
    def has_ended(self, within_seconds: float) -> bool:
        """Waits for its end; False where it does not come."""


StartChild = Callable[[str, socket.socket], Child]
"""Runs `python -m MODULE --link N`, N being this socket, which is the child's then; OSError."""


class OwnChild:
    """One that we started ourselves."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()

    def has_ended(self, within_seconds: float = 0.0) -> bool:
        try:
            self._process.wait(within_seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


def start_own(module: str, link: socket.socket) -> OwnChild:
    process = subprocess.Popen(
        [sys.executable, "-m", module, "--link", str(link.fileno())],
        pass_fds=[link.fileno()],
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in a terminal is for the agent, which ends it
    )
    return OwnChild(process)
