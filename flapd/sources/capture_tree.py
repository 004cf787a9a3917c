"""The tree of a capture: every device read by a child process of its own, in bounded time."""

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from flapd.model.errors import CouldNotFindOutError
from flapd.sources.capture import SYSFS, Member
from flapd.sources.capture_files import DEVICES, NETDEVS
from flapd.sources.capture_reading import Excluded, Planned, Read, Told
from flapd.sources.discovery import devices_of, refuse_no_sysfs

PATIENCE_SECONDS = 5.0
"""A read that takes longer hangs;"""
STARTS_WITHIN_SECONDS = 30.0
"""a child that starts on a busy machine does not;"""
LONGEST_SECONDS = 60.0
"""and a device that is slow throughout is not waited for any longer than this."""

_decode = msgspec.json.Decoder(Told).decode
_PIECE_BYTES = 1 << 16
_MOST_AT_ONCE = 16


class Tree(msgspec.Struct):
    """What was found below sysfs; paths are real and relative to it."""

    directories: set[str] = msgspec.field(default_factory=lambda: {DEVICES, NETDEVS})
    links: dict[str, str] = {}
    files: dict[str, bytes] = {}
    errors: dict[str, str] = {}
    hung: set[str] = set()
    unread: set[str] = set()
    excluded: set[str] = set()
    """Names of ports that are not read, as it is configured."""

    def add(self, part: "Tree") -> None:
        """What one device has and another (its netdevs may be both's): a content wins."""
        self.directories |= part.directories
        self.links.update(part.links)
        self.files.update(part.files)
        errors = {**self.errors, **part.errors}
        self.errors = {path: errors[path] for path in errors.keys() - self.files.keys()}
        self.hung = (self.hung | part.hung) - self.files.keys()
        self.excluded |= part.excluded
        self.unread = (self.unread | part.unread) - self.files.keys()

    def members(self) -> Iterator[Member]:
        """In the order of their paths; a file without content is there and empty."""
        empty = {*self.errors, *self.hung, *self.unread} - self.files.keys()
        for path in sorted({*self.directories, *self.links, *self.files, *empty}):
            name = f"{SYSFS}/{path}"
            if path in self.links:
                yield Member(name, link=self.links[path])
            elif path in self.directories:
                yield Member(name, is_directory=True)
            else:
                yield Member(name, self.files.get(path, b""))


def read_tree(
    sysfs: Path,
    exclude: Sequence[str] = (),
    patience_seconds: float = PATIENCE_SECONDS,
    passed: Callable[[int, int], None] = lambda _done, _all: None,
) -> Tree:
    """Every device's files, but those of ports that match a pattern of `exclude`.

    `passed` is told how many devices of how many are done. FlapdError where this is no
    sysfs, CouldNotFindOutError where it cannot be listed.
    """
    refuse_no_sysfs(sysfs)
    tree = Tree()
    try:
        devices = devices_of(sysfs)
    except OSError as error:
        raise CouldNotFindOutError(f"{sysfs} cannot be read: {error}") from error
    with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
        parts = [
            pool.submit(_read_device, sysfs, name, exclude, patience_seconds) for name in devices
        ]
        for done, part in enumerate(parts):
            passed(done, len(devices))
            tree.add(part.result())
    return tree


def _read_device(sysfs: Path, device: str, exclude: Sequence[str], patience_seconds: float) -> Tree:
    part, waiting = Tree(), list[str]()
    child = subprocess.Popen(
        [sys.executable, "-m", "flapd.sources.capture_reading", str(sysfs), device, *exclude],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert child.stdout is not None
    with child.stdout:
        try:
            for line in _lines(child.stdout.fileno(), patience_seconds):
                _take(part, waiting, _decode(line))
        except TimeoutError:
            part.hung.add(waiting.pop(0) if waiting else _whole(part, device))
        else:
            waiting += [_whole(part, device)] if child.wait() != 0 else []
    part.unread.update(waiting)
    _end(child)
    return part


def _whole(part: Tree, device: str) -> str:
    """Stands for what nobody could name."""
    path = f"{DEVICES}/{device}"
    part.directories.add(path)
    return path


def _lines(descriptor: int, patience_seconds: float) -> Iterator[bytes]:
    """What the child says; TimeoutError where it is silent for too long."""
    ends = time.monotonic() + LONGEST_SECONDS
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    within, rest = STARTS_WITHIN_SECONDS, b""
    while True:
        if not poll.poll(max(0, round(within * 1000))):
            raise TimeoutError
        piece = os.read(descriptor, _PIECE_BYTES)
        if not piece:
            return
        within = min(patience_seconds, ends - time.monotonic())
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines


def _take(part: Tree, waiting: list[str], told: Told) -> None:
    """`waiting` are the files that were planned and have given nothing yet."""
    if isinstance(told, Planned):
        waiting += told.paths
    elif isinstance(told, Read):
        waiting.remove(told.path)
        if told.error is None:
            part.files[told.path] = told.content
        else:
            part.errors[told.path] = told.error
    elif isinstance(told, Excluded):
        part.excluded.add(told.port)
    elif told.target is None:
        part.directories.add(told.path)
    else:
        part.links[told.path] = told.target


def _end(child: "subprocess.Popen[bytes]") -> None:
    """One that waits in the kernel ends when it comes back from there; nobody waits for that."""
    child.kill()
    threading.Thread(target=child.wait, daemon=True).start()
