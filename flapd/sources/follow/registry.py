"""Registry: which files are followed, so that none is told twice, and how far each was read."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from flapd.core.job.forms import FORMS
from flapd.core.job.sieve import Sieve
from flapd.model.finding import Finding
from flapd.sources.follow.followed_file import FollowedFile
from flapd.sources.follow.open_log import OpenLog
from flapd.sources.follow.position import Position

_MOST_REMEMBERED = 8192


class Registry:
    """What following one file needs of all else (followed_file.Around); used from all threads."""

    def __init__(
        self,
        tell: Callable[[str | None, list[Finding]], None],
        at: Callable[[Position], None],
        positions: Mapping[str, Position],
    ) -> None:
        """`tell` gets a job with what its log says. `at`: so far was told before."""
        self.sieve = Sieve(FORMS)
        self.bytes = 0
        self.unknown_warnings = 0
        self._tell = tell
        self._at = at
        self._lock = threading.Lock()
        self._claims: dict[tuple[int, int], FollowedFile] = {}
        self._by_key = dict(positions)
        self._at_start = {position.inode: position for position in positions.values()}
        self._left: dict[tuple[int, int], Position] = {}
        """Files that are followed no more."""

    def known(self, key: str, file: tuple[int, int]) -> Position | None:
        """By its number alone after a reboot, when file systems may have others."""
        with self._lock:
            return self._left.get(file) or self._by_key.get(key) or self._at_start.get(file[1])

    def claim(self, log: OpenLog, by: FollowedFile) -> bool:
        with self._lock:
            other = self._claims.get(log.key)
            if other is None:
                self._claims[log.key] = by
            else:
                other.jobs |= by.jobs
            return other is None

    def release(self, log: OpenLog, position: Position) -> None:
        with self._lock:
            self._claims.pop(log.key, None)
            self._left[log.key] = position
            _bound(self._left)

    def found(self, by: FollowedFile, findings: list[Finding]) -> None:
        if findings:
            self._tell(by.job, findings)

    def at(self, position: Position) -> None:
        with self._lock:
            self._by_key.pop(position.key, None)
            self._by_key[position.key] = position
            _bound(self._by_key)
        self._at(position)

    def count(self, read_bytes: int, unknown_warnings: int) -> None:
        with self._lock:
            self.bytes += read_bytes
            self.unknown_warnings += unknown_warnings


def _bound(remembered: dict[Any, Position]) -> None:
    if len(remembered) > _MOST_REMEMBERED:
        del remembered[next(iter(remembered))]
