"""WatchTerminal: keys one by one, signals and wakes from other threads, in one place to wait."""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

_TOLD = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGTERM)
_SIZE_UNKNOWN = (80, 24)


class Told(NamedTuple):
    keys: bytes = b""
    signals: bytes = b""
    """Their numbers."""


class WatchTerminal:
    def __init__(self) -> None:
        self._keys = sys.stdin.fileno()
        self._told, self._tell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def wake(self) -> None:
        """From any thread."""
        with suppress(BlockingIOError):  # it is full of wakes
            os.write(self._tell, b"\0")

    def wait(self, seconds: float) -> Told:
        """Until a key, a signal or a wake comes, or so long."""
        ready, _, _ = select.select([self._keys, self._told], [], [], seconds)
        signals = os.read(self._told, 4096) if self._told in ready else b""
        if self._keys not in ready:
            return Told(b"", signals)
        # Nothing to read is the end: the terminal has gone.
        return Told(os.read(self._keys, 64) or b"q", signals)

    def size(self) -> tuple[int, int]:
        """Columns and lines now, whatever the environment says."""
        size = os.get_terminal_size(sys.stdout.fileno())
        return (size.columns, size.lines) if size.columns and size.lines else _SIZE_UNKNOWN

    @contextmanager
    def keys_one_by_one(self) -> Iterator[None]:
        """Keys come at once and are not printed; signals are told instead of obeyed, Ctrl-C not."""
        before = termios.tcgetattr(self._keys)
        handlers = {number: signal.signal(number, _noted) for number in _TOLD}
        wakeup = signal.set_wakeup_fd(self._tell, warn_on_full_buffer=False)
        try:
            tty.setcbreak(self._keys)
            yield
        finally:
            termios.tcsetattr(self._keys, termios.TCSADRAIN, before)
            signal.set_wakeup_fd(wakeup)
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _noted(_number: int, _frame: object) -> None:
    """The pipe has its number; Python writes it there for signals that have a handler."""
