"""Plain: the tree as ordinary files, rewritten when they change, where FUSE is not to be had.

What it cannot do, and the mounted tree can: reads never fail or hang (no faults; a
file whose read would fail at first is left out, one whose read would fail later stays
as it was); nothing comes or goes (no changes); a file changes some time after its edge,
late by what the scheduler and the rewriting take; traffic counters move in steps of
100 ms; a reader may catch a file between its new bytes and its new length, and
different files of one edge at different moments. `st_size` is the content's and not 4096.
"""

import os
import shutil
import threading
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from flapd.model.times import MILLISECOND_NS, SECOND_NS
from simulators.errors import SimulatorError
from simulators.fabric.node import Directory, File, Node, Symlink, Tree

_FLOW_NS = 100 * MILLISECOND_NS


class PlainFile:
    """One file on a kept descriptor: written in place, since readers keep descriptors too."""

    def __init__(self, path: Path, file: File, content: bytes) -> None:
        self.file = file
        self._content = content
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.pwrite(self._descriptor, content, 0)

    def show(self, t_ns: int) -> None:
        """A read that would fail leaves the last content: plain files cannot refuse one."""
        try:
            content = self.file.content(t_ns)
        except OSError:
            return
        if content == self._content:
            return
        os.pwrite(self._descriptor, content, 0)
        if len(content) < len(self._content):
            os.ftruncate(self._descriptor, len(content))
        self._content = content

    def close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def written(tree: Tree, directory: Path, edges_ns: Iterable[int]) -> Iterator[None]:
    """Within it the tree stands in `directory` and follows its schedule; after it, it is gone.

    `edges_ns` are the moments (monotonic) at which any port changes. SimulatorError
    where the directory cannot be written.
    """
    stopping = threading.Event()
    with ExitStack() as stack:
        stack.callback(_remove, tree, directory)
        files = _write(tree, directory, time.monotonic_ns())
        for file in files:
            stack.callback(file.close)
        writer = threading.Thread(target=_follow, args=(files, sorted(edges_ns), stopping))
        writer.start()
        stack.callback(writer.join)
        stack.callback(stopping.set)
        yield


def _write(tree: Tree, directory: Path, t_ns: int) -> list[PlainFile]:
    """Those of the written files that will change."""
    files = []
    try:
        for path in sorted(tree):
            file = _write_node(directory / path.lstrip("/"), tree[path], t_ns)
            if file is not None:
                files.append(file)
    except OSError as error:
        raise SimulatorError(f"{error.filename} cannot be written: {error.strerror}") from error
    return files


def _write_node(place: Path, node: Node, t_ns: int) -> PlainFile | None:
    if isinstance(node, Directory):
        place.mkdir(exist_ok=True)
    elif isinstance(node, Symlink):
        place.symlink_to(node.target)
    else:
        return _write_file(place, node, t_ns)
    return None


def _write_file(place: Path, file: File, t_ns: int) -> PlainFile | None:
    try:
        content = file.content(t_ns)
    except OSError:
        return None
    plain = PlainFile(place, file, content)
    if file.changes != "never":
        return plain
    plain.close()
    return None


def _follow(files: list[PlainFile], edges_ns: list[int], stopping: threading.Event) -> None:
    flowing = [file for file in files if file.file.changes == "flows"]
    passed = 0
    while not stopping.is_set():
        now_ns = time.monotonic_ns()
        reached = bisect_right(edges_ns, now_ns)
        for file in files if reached > passed else flowing:
            file.show(now_ns)
        passed = reached
        next_edge_ns = edges_ns[reached] if reached < len(edges_ns) else now_ns + _FLOW_NS
        wake_ns = min(next_edge_ns, now_ns + _FLOW_NS)
        stopping.wait(max(0, wake_ns - time.monotonic_ns()) / SECOND_NS)


def _remove(tree: Tree, directory: Path) -> None:
    root = tree["/"]
    if isinstance(root, Directory):
        for name in root.names:
            shutil.rmtree(directory / name, ignore_errors=True)
