"""Pattern: files that match a glob, also those to come."""

import glob
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from flapd.model.times import SECOND_NS

LOOK_NS = SECOND_NS
SHARE = 20
"""A look that takes long comes seldom: it takes no more than this part of a thread's time."""
MOST_FILES = 2000
_MAGIC = ("*", "?", "[")


class Pattern:
    """Tells of all files again and again. No `**`: links make loops."""

    def __init__(self, pattern: str, take: Callable[[Path, bool], None]) -> None:
        """`take` gets a path, and whether it is new: this is not the first look."""
        self.name = pattern
        self.due_ns = 0
        self.is_over = False
        self._take = take
        self._has_looked = False

    def turn(self) -> None:
        began_ns = time.monotonic_ns()
        paths = glob.iglob(self.name)  # noqa: PTH207 - anywhere, not below one directory
        found = list(islice(paths, MOST_FILES))
        for path in found:
            self._take(Path(path), self._has_looked)
        self._has_looked = True
        now_ns = time.monotonic_ns()
        self.due_ns = now_ns + max(LOOK_NS, SHARE * (now_ns - began_ns))

    def close(self) -> None:
        """It holds nothing."""


def fixed_part(pattern: str) -> str:
    """The directory in which the search begins."""
    parts = Path(pattern).parts
    return str(Path(*parts[: _first_magic(parts)]))


def _first_magic(parts: tuple[str, ...]) -> int:
    magic = (index for index, part in enumerate(parts) if any(sign in part for sign in _MAGIC))
    return min(next(magic, len(parts)), len(parts) - 1)
