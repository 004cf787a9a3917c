"""Faults: which reads hang, fail, take long or show something else, and when."""

import errno
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from simulators.errors import SimulatorError
from simulators.fabric.changes import ALWAYS_NS, NEVER_NS
from simulators.fabric.node import File, Symlink, Tree
from simulators.fabric.schedule import nanoseconds
from simulators.fabric.spec import Fault


@dataclass(frozen=True)
class Window:
    """What goes wrong with reads from `begin_ns` up to `end_ns` (monotonic)."""

    kind: Literal["hang", "errno", "slow", "text"]
    begin_ns: int = ALWAYS_NS
    end_ns: int = NEVER_NS
    error: int = errno.EIO
    delay_ns: int = 0
    text: bytes = b""


Windows = dict[str, tuple[Window, ...]]
"""Path of a file -> what goes wrong with reading it; files without faults are not in it."""


def fault_windows(faults: Iterable[Fault], trees: Iterable[Tree], origin_ns: int) -> Windows:
    """The faults laid on the files of all trees; SimulatorError where one matches no file."""
    windows: Windows = {}
    names: dict[str, set[str]] = {}
    faults = tuple(faults)
    for tree in trees if faults else ():
        for path in _files(tree):
            names.setdefault(path, set()).update(_names(path, tree))
    for fault in faults:
        hit = [path for path, known in names.items() if _matches(fault, known)]
        if not hit:
            raise SimulatorError(f"fault path {fault.path!r} matches no file of the simulated tree")
        for path in hit:
            windows[path] = (*windows.get(path, ()), _window(fault, origin_ns))
    return windows


def window_at(windows: tuple[Window, ...], t_ns: int) -> Window | None:
    """The first fault in force at `t_ns`."""
    return next((w for w in windows if w.begin_ns <= t_ns < w.end_ns), None)


def _files(tree: Tree) -> Iterator[str]:
    return (path for path, node in tree.items() if isinstance(node, File))


def _names(path: str, tree: Tree) -> Iterator[str]:
    """A file system sees /devices alone, people write /class: a fault may say either."""
    yield path
    for link, node in tree.items():
        if isinstance(node, Symlink) and link.startswith("/class/"):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(link), node.target))
            if path.startswith(f"{target}/"):
                yield link + path[len(target) :]


def _matches(fault: Fault, names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, fault.path) for name in names)


def _window(fault: Fault, origin_ns: int) -> Window:
    return Window(
        kind=fault.kind,
        begin_ns=origin_ns + nanoseconds(fault.begin_seconds),
        end_ns=origin_ns + nanoseconds(fault.end_seconds),
        error=getattr(errno, fault.error),
        delay_ns=nanoseconds(fault.delay_seconds),
        text=fault.text.encode(),
    )
