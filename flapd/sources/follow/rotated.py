"""Where the earlier part of a log went that was rotated: its neighbours with a longer name."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from flapd.model.times import SECOND_NS

_COMPRESSED = (".gz", ".xz", ".zst", ".bz2", ".lz4", ".Z", ".zip")
_SLACK_NS = 2 * SECOND_NS
"""Clocks of file systems are coarse, and those of servers are others."""
_MOST = 1000


def rotated_since(path: Path, since_ns: int) -> list[Path]:
    """`train.log.1` of `train.log` and the like, written since then, the oldest first.

    What was compressed meanwhile cannot be read any more.
    """
    found = sorted(_neighbours(path, since_ns - _SLACK_NS))
    return [neighbour for _, neighbour in found[-_MOST:]]


def _neighbours(path: Path, since_ns: int) -> Iterator[tuple[int, Path]]:
    with os.scandir(path.parent) as entries:
        for entry in entries:
            if entry.name.startswith(path.name) and entry.name != path.name:
                with suppress(OSError):  # it is gone already
                    changed_ns = entry.stat(follow_symlinks=False).st_mtime_ns
                    is_log = entry.is_file(follow_symlinks=False)
                    if is_log and changed_ns >= since_ns and not entry.name.endswith(_COMPRESSED):
                        yield changed_ns, Path(entry.path)
