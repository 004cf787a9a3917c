"""A terminal that is emulated, and a command of flapd that runs in it."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyte

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 20.0


class Screen(pyte.Screen):
    """Knows whether it shows the alternate screen and hides the cursor, as `less` has it."""

    is_alternate = False
    hides_cursor = False

    def set_mode(self, *modes: int, **options: bool) -> None:
        self._switched(modes, options, on=True)
        super().set_mode(*modes, **options)

    def reset_mode(self, *modes: int, **options: bool) -> None:
        self._switched(modes, options, on=False)
        super().reset_mode(*modes, **options)

    def _switched(self, modes: tuple[int, ...], options: dict[str, bool], on: bool) -> None:
        if options.get("private"):
            self.is_alternate = on if 1049 in modes else self.is_alternate
            self.hides_cursor = (not on) if 25 in modes else self.hides_cursor


class Terminal:
    """What a command shows on it."""

    def __init__(self, main: int, side: int, columns: int, lines: int) -> None:
        self._main = main
        self._side = side
        self.screen = Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.resize(columns, lines)
        self.process: subprocess.Popen[bytes]

    def start(self, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            ("setsid", "--ctty", *arguments),
            cwd=ROOT,
            stdin=self._side,
            stdout=self._side,
            stderr=self._side,
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def type(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def mode(self) -> list[object]:
        return termios.tcgetattr(self._side)

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    def text(self) -> str:
        return "\n".join(self.lines())

    def shows(self, words: str) -> str:
        """Waits until it does; the whole screen."""
        self.until(lambda: words in self.text(), f"{words!r} on the screen")
        return self.text()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}:\n{self.text()}"
            self._read(0.05)

    def ends(self) -> int:
        """The exit status, with all that was printed shown."""
        self.until(lambda: self.process.poll() is not None, "its end")
        while self._read(0):
            pass
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self._main], [], [], seconds)[0]:
            return False
        self._stream.feed(os.read(self._main, 65536))
        return True


@contextmanager
def terminal(columns: int = 100, lines: int = 30) -> Iterator[Terminal]:
    main, side = pty.openpty()
    shown = Terminal(main, side, columns, lines)
    try:
        yield shown
    finally:
        if shown.process.poll() is None:
            shown.process.send_signal(signal.SIGCONT)
            shown.process.kill()
        shown.process.wait()
        os.close(main)
        os.close(side)


def flapd(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "flapd", *words)
