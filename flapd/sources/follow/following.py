"""Following: all logs of this node that are read."""

import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from flapd.sources.files import reason_of
from flapd.sources.follow.followed_file import FollowedFile
from flapd.sources.follow.mounts import Mount, mount_of, mounts_in
from flapd.sources.follow.pattern import Pattern, fixed_part
from flapd.sources.follow.position import Position
from flapd.sources.follow.registry import Registry
from flapd.sources.follow.regular import open_regular
from flapd.sources.follow.turns import Item, Turns

MOST_FILES = 2000
ALL = 1 << 62
"""Bytes: more than any file has."""
_MOST_FAILURES = 64
_MOUNTS = Path("/proc/self/mountinfo")


class FollowHealth(msgspec.Struct):
    """What happened to logs since the reader started."""

    files: int
    bytes: int
    behind_bytes: int
    """That are there and not read yet."""
    unknown_warnings: int
    """Of NCCL, in forms that are not known."""
    failures: dict[str, str]
    """What cannot be read now, and why."""


class Following:
    """Used from all threads of the reader."""

    def __init__(
        self,
        node: str,
        registry: Registry,
        *,
        from_start: bool,
        after_round: Callable[[], None] = lambda: None,
    ) -> None:
        """`after_round` is called whenever a thread has read what there was."""
        self._node = node
        self._registry = registry
        self._from_start = from_start
        self._lock = threading.Lock()
        self._files: dict[str, FollowedFile] = {}
        self._by_path: dict[Path, FollowedFile] = {}
        self._postponed: dict[Path, None] = {}
        self._failures: dict[str, str] = {}
        self.turns = Turns(self, after_round, self._gone)

    def look(self) -> None:
        """Frees what waits for a file that hangs; to be called all the time."""
        self.turns.look()

    def add_pattern(self, pattern: str, job: str | None = None, backlog_bytes: int = 0) -> None:
        """Follows every file that matches; of those that are here already so much is read."""

        def take(path: Path, is_new: bool) -> None:
            if path not in self._by_path and not self._postpones(path, is_new=is_new):
                self._postponed.pop(path, None)
                mount = self.mount_of(str(path))
                self.add_file(
                    str(path),
                    lambda: open_regular(path),
                    mount,
                    path=path,
                    job=job,
                    is_new=is_new,
                    backlog_bytes=backlog_bytes,
                )

        self.turns.add(Pattern(pattern, take), self.mount_of(fixed_part(pattern)).device)

    def _postpones(self, path: Path, *, is_new: bool) -> bool:
        """What may be the earlier part of another log is that log's until the next look."""
        if not is_new or path in self._postponed:
            return False
        with self._lock:
            names = [other.name for other in self._by_path if other.parent == path.parent]
        if any(path.name.startswith(name) for name in names):
            self._postponed[path] = None
        return path in self._postponed

    def add_file(
        self,
        name: str,
        open_it: Callable[[], int],
        mount: Mount,
        *,
        path: Path | None = None,
        job: str | None = None,
        is_new: bool = False,
        backlog_bytes: int = 0,
    ) -> bool:
        """Follows it, or knows that it is this job's as well; False where there are too many."""
        key = f"{mount.device} {name}"
        with self._lock:
            known = self._files.get(key)
            if known is not None:
                known.jobs |= set() if job is None else {job}
                return True
            if len(self._files) >= MOST_FILES:
                self._failures["logs"] = f"more than {MOST_FILES} files: the others are not read"
                return False
            file = FollowedFile(
                name,
                key,
                self._registry,
                open_it,
                scope="" if mount.is_shared else self._node,
                path=path,
                is_new=is_new,
                backlog_bytes=ALL if self._from_start else backlog_bytes,
                job=job,
            )
            self._files[key] = file
            if path is not None:
                self._by_path[path] = file
        self.turns.add(file, mount.device)
        return True

    def add_left(self, position: Position, job: str) -> bool:
        """Reads on in a log whose job has ended; False where its name means another file now."""
        device, _, name = position.key.partition(" ")
        mount = self.mount_of(name)
        if mount.device != device:
            return False
        return self.add_file(name, partial(_open_same, name, position), mount, job=job)

    def end_job(self, job: str) -> None:
        """Its files belong to it no more."""
        with self._lock:
            for file in self._files.values():
                file.jobs.discard(job)

    def mount_of(self, path: str) -> Mount:
        """Read anew each time: they come and go."""
        return mount_of(path, mounts_in(_MOUNTS.read_text(errors="replace")))

    def health(self) -> FollowHealth:
        registry = self._registry
        with self._lock:
            failures, files = dict(self._failures), list(self._files.values())
        for name, seconds in self.turns.hanging().items():
            failures[name] = f"it does not answer for {seconds:.0f} s"
        behind = sum(file.behind_bytes for file in files)
        return FollowHealth(len(files), registry.bytes, behind, registry.unknown_warnings, failures)

    def failed(self, name: str, error: OSError) -> None:
        self.note_failure(name, error.strerror or reason_of(error))

    def worked(self, name: str) -> None:
        if name in self._failures:
            self.note_failure(name, None)

    def note_failure(self, name: str, reason: str | None) -> None:
        """None: there is none any more."""
        with self._lock:
            if reason is None:
                self._failures.pop(name, None)
            elif len(self._failures) < _MOST_FAILURES:
                self._failures[name] = reason

    def _gone(self, item: Item) -> None:
        with self._lock:
            self._failures.pop(item.name, None)
            if isinstance(item, FollowedFile):
                self._files.pop(item.key, None)
                if item.path is not None:
                    self._by_path.pop(item.path, None)


def _open_same(name: str, position: Position) -> int:
    """FileNotFoundError where it is another file, or was written anew."""
    fd = open_regular(name)
    if os.fstat(fd).st_ino != position.inode or not position.mark.is_in(fd):
        os.close(fd)
        raise FileNotFoundError(name)
    return fd
