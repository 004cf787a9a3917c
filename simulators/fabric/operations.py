"""Operations: answers the kernel's questions about the tree, at the moment they are asked."""

import errno
import itertools
import os
import stat
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from flapd.model.times import SECOND_NS
from simulators.fabric.faults import Window, Windows, window_at
from simulators.fabric.node import Directory, File, Node, Symlink, Tree, refusal
from simulators.fabric.tree import Epoch

_SYSFS_SIZE = 4096
_LONGEST_WAIT_SECONDS = 3600.0

Attributes = dict[str, int]
Entry = tuple[str, int, int]
"""Name, mode and offset, as libfuse's filler takes them."""


T = TypeVar("T")


class FileInfo(Protocol):
    """libfuse's fuse_file_info, as far as it is used here."""

    fh: int
    direct_io: int


class _Opened:
    """One open descriptor: a read at 0 shows anew, later offsets go on in what was shown."""

    __slots__ = ("file", "shown", "windows")

    def __init__(self, file: File, windows: tuple[Window, ...]) -> None:
        self.file = file
        self.windows = windows
        self.shown = b""


class _View:
    """One tree, in the forms in which the kernel asks for it."""

    def __init__(self, tree: Tree) -> None:
        self.files = {path: node for path, node in tree.items() if isinstance(node, File)}
        self.targets = {path: n.target for path, n in tree.items() if isinstance(n, Symlink)}
        self.attributes = {path: _attributes(node) for path, node in tree.items()}
        self.entries = {
            path: _entries(path, node, self.attributes)
            for path, node in tree.items()
            if isinstance(node, Directory)
        }


class Operations:
    """The tree of each moment as a read-only file system; any method may run in any thread.

    OSError is what the reader sees. After `stop()` nothing hangs any more.
    """

    use_ns = True

    def __init__(
        self,
        epochs: Sequence[Epoch],
        windows: Windows | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._from_ns = [epoch.from_ns for epoch in epochs]
        self._views = [_View(epoch.tree) for epoch in epochs]
        self._windows = windows or {}
        self._clock = clock
        self._opened: dict[int, _Opened] = {}
        self._handles = itertools.count(1)
        self._stopping = threading.Event()
        self.ready = threading.Event()

    @property
    def is_still(self) -> bool:
        """No file comes or goes: what was asked once need not be asked again."""
        return len(self._views) == 1

    def init(self, _path: str) -> None:
        """Called by libfuse when the kernel has accepted the file system."""
        self.ready.set()

    def stop(self) -> None:
        self._stopping.set()

    def getattr(self, path: str, _info: FileInfo | None = None) -> Attributes:
        return _known(self._view().attributes, path)

    def readdir(self, path: str, _handle: int) -> list[Entry]:
        return _known(self._view().entries, path)

    def readlink(self, path: str) -> str:
        return _known(self._view().targets, path)

    def open(self, path: str, info: FileInfo) -> int:
        file = _known(self._view().files, path)
        handle = next(self._handles)
        self._opened[handle] = _Opened(file, self._windows.get(path, ()))
        info.fh = handle
        # Each read has to reach us: neither the page cache nor st_size may cut it short.
        info.direct_io = 1
        return 0

    def read(self, _path: str, size: int, offset: int, info: FileInfo) -> bytes:
        opened = self._opened[info.fh]
        if offset == 0:
            opened.shown = self._show(opened)
        return opened.shown[offset : offset + size]

    def release(self, _path: str, info: FileInfo) -> int:
        del self._opened[info.fh]
        return 0

    def _view(self) -> _View:
        return self._views[bisect_right(self._from_ns, self._clock()) - 1]

    def _show(self, opened: _Opened) -> bytes:
        """What a read shows, after the waits that it has to endure."""
        t_ns = self._clock()
        window = window_at(opened.windows, t_ns)
        while window is not None and window.kind == "hang":
            self._wait(window.end_ns - t_ns)
            t_ns = self._clock()
            window = window_at(opened.windows, t_ns)
        if window is not None and window.kind == "slow":
            self._wait(window.delay_ns)
            t_ns = self._clock()
        if t_ns >= opened.file.until_ns:
            raise refusal(errno.ENODEV)
        if window is not None and window.kind == "errno":
            raise refusal(window.error)
        if window is not None and window.kind == "text":
            return window.text
        return opened.file.content(t_ns)

    def _wait(self, ns: int) -> None:
        if self._stopping.wait(min(ns / SECOND_NS, _LONGEST_WAIT_SECONDS)):
            raise refusal(errno.ENODEV)


def _known(table: dict[str, T], path: str) -> T:
    try:
        return table[path]
    except KeyError:
        raise refusal(errno.ENOENT) from None


def _attributes(node: Node) -> Attributes:
    now_ns = time.time_ns()
    times = {"st_atime": now_ns, "st_mtime": now_ns, "st_ctime": now_ns}
    owner = {"st_uid": os.getuid(), "st_gid": os.getgid()}
    return {**_kind(node), **owner, **times}


def _kind(node: Node) -> Attributes:
    if isinstance(node, File):
        return {"st_mode": stat.S_IFREG | 0o444, "st_nlink": 1, "st_size": _SYSFS_SIZE}
    if isinstance(node, Symlink):
        return {"st_mode": stat.S_IFLNK | 0o777, "st_nlink": 1, "st_size": 0}
    return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2, "st_size": 0}


def _entries(path: str, directory: Directory, known: dict[str, Attributes]) -> list[Entry]:
    mode = known[path]["st_mode"]
    inside = path.rstrip("/")
    return [
        (".", mode, 0),
        ("..", mode, 0),
        *((name, known[f"{inside}/{name}"]["st_mode"], 0) for name in directory.names),
    ]
