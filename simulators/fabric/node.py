"""Node: what a path of the simulated /sys is, and the tree of them."""

import os
import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

Content = Callable[[int], bytes]
"""Monotonic nanoseconds -> what a read at that moment shows; OSError where a read fails."""

Changes = Literal["never", "edges", "flows"]
"""When a content can change: never, when a port goes down or comes up, or all the time."""


FOREVER_NS = 1 << 62


@dataclass(frozen=True)
class File:
    content: Content
    changes: Changes = "never"
    until_ns: int = FOREVER_NS
    """When it is removed (monotonic): who keeps it open reads ENODEV from then on."""


@dataclass(frozen=True)
class Symlink:
    target: str


@dataclass(frozen=True)
class Directory:
    names: tuple[str, ...]


Leaf = File | Symlink
Node = File | Symlink | Directory
Leaves = dict[str, Leaf]
Tree = dict[str, Node]
"""Absolute path (the root is "/") -> node."""


def fixed(text: str) -> File:
    """A file that shows one line, always the same."""
    line = f"{text}\n".encode()
    return File(lambda _: line)


def refusal(error: int) -> OSError:
    """What a reader is told by its number."""
    return OSError(error, os.strerror(error))


def refused(error: int) -> File:
    """A file that exists and whose read fails, as the kernel does for an empty GID slot."""

    def refuse(_: int) -> bytes:
        raise refusal(error)

    return File(refuse)


def decimal(value: Callable[[int], int], changes: Changes) -> File:
    return File(lambda t_ns: b"%d\n" % value(t_ns), changes)


def link(path: str, target: str) -> Symlink:
    """The relative link the kernel would put at `path`, to the absolute `target`.

    It ends in the target's name, also where the target lies right above: readers take
    PCI addresses and drivers from there.
    """
    above, name = posixpath.split(target)
    return Symlink(posixpath.join(posixpath.relpath(above, posixpath.dirname(path)), name))


def below(prefix: str, files: Mapping[str, Leaf]) -> Leaves:
    return {f"{prefix}/{name}": leaf for name, leaf in files.items()}


def removed_at(leaves: Leaves, end_ns: int) -> Leaves:
    """The same, but gone at `end_ns`."""
    return {
        path: replace(leaf, until_ns=end_ns) if isinstance(leaf, File) else leaf
        for path, leaf in leaves.items()
    }


def with_directories(leaves: Leaves, more: Iterable[str] = ()) -> Tree:
    """The tree of these leaves: every directory above them, up to the root, and some more."""
    directories_also = tuple(more)
    names: dict[str, set[str]] = {path: set() for path in ("/", *directories_also)}
    for path in (*leaves, *directories_also):
        child = path
        while child != "/":
            parent = posixpath.dirname(child)
            names.setdefault(parent, set()).add(posixpath.basename(child))
            child = parent
    directories = {path: Directory(tuple(sorted(inside))) for path, inside in names.items()}
    return {**directories, **leaves}
