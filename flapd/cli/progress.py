"""A progress bar for what takes longer than a second; on a terminal only."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

AFTER_SECONDS = 1.0

Passed = Callable[[int, int], None]
"""Told how much of how much is done."""


@contextmanager
def progress(title: str) -> Iterator[Passed]:
    """Beside the data: on stderr, and gone when it ends."""
    bar = _Bar(title)
    try:
        yield bar.passed
    finally:
        bar.close()


class _Bar:
    def __init__(self, title: str) -> None:
        self._title = title
        self._begins = time.monotonic() + AFTER_SECONDS
        self._shown: Any = None

    def passed(self, done: int, of: int) -> None:
        if self._shown is None and sys.stderr.isatty() and time.monotonic() >= self._begins:
            self._show()
        if self._shown is not None:
            self._shown.update(0, completed=done, total=of)

    def _show(self) -> None:
        # What ends sooner must not wait for rich to be imported.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import Progress  # noqa: PLC0415

        self._shown = Progress(console=Console(stderr=True), transient=True)
        self._shown.add_task(self._title)
        self._shown.start()

    def close(self) -> None:
        if self._shown is not None:
            self._shown.stop()
