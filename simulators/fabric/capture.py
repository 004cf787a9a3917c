"""Capture: a bundle of `flapd capture` as a tree that stands still, with its recorded errors.

The bundle is a gzipped tar with the captured tree below `sysfs/`, links relative, and
`manifest.json`: {"format": 1, "errors": {path: errno name}, "hung": [path], "unread":
[path]}, its paths relative to `sysfs/`.
"""

import errno
import posixpath
import tarfile
from pathlib import Path

import msgspec

from simulators.errors import SimulatorError
from simulators.fabric.faults import Window, Windows
from simulators.fabric.node import File, Leaves, Symlink, Tree, refused, with_directories

_FORMAT = 1
_MANIFEST = "manifest.json"
_TOP = "sysfs"
_LARGEST_FILE_BYTES = 1 << 20
_MOST_MEMBERS = 200_000


class _Manifest(msgspec.Struct, frozen=True):
    format: int
    errors: dict[str, str] = {}
    hung: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """Not reached, since a read of the same device hung: they would have hung as well."""


def read_capture(path: Path) -> tuple[Tree, Windows]:
    """The tree, and what hangs in it for ever; SimulatorError where it is no such bundle."""
    try:
        with tarfile.open(path, "r:gz") as bundle:
            manifest, leaves, directories = _unpacked(bundle, path)
    except (OSError, EOFError, tarfile.TarError, msgspec.DecodeError) as error:
        raise SimulatorError(f"capture {path} cannot be read: {error}") from error
    if manifest is None or manifest.format != _FORMAT:
        raise SimulatorError(f"capture {path} has no {_MANIFEST} of format {_FORMAT}")
    for name, error_name in manifest.errors.items():
        leaves[f"/{name}"] = refused(getattr(errno, error_name, errno.EIO))
    hanging = [f"/{name}" for name in (*manifest.hung, *manifest.unread)]
    leaves |= {place: File(lambda _: b"") for place in hanging if place not in leaves}
    parents = {posixpath.dirname(place) for place in leaves}
    leaves = {place: leaf for place, leaf in leaves.items() if place not in directories | parents}
    tree = with_directories(leaves, directories)
    return tree, {place: (Window("hang"),) for place in hanging if place in leaves}


def _unpacked(bundle: tarfile.TarFile, path: Path) -> tuple[_Manifest | None, Leaves, set[str]]:
    manifest, leaves, directories = None, Leaves(), set()
    for count, member in enumerate(bundle):
        if count >= _MOST_MEMBERS or (member.size > _LARGEST_FILE_BYTES and _place(member)):
            raise SimulatorError(f"capture {path} is too large: {member.name}")
        place = _place(member)
        if member.name == _MANIFEST:
            manifest = msgspec.json.decode(_content(bundle, member), type=_Manifest)
        elif place is None:
            continue
        elif member.isdir():
            directories.add(place)
        elif member.issym():
            leaves[place] = Symlink(member.linkname)
        elif member.isreg():
            leaves[place] = _still(_content(bundle, member))
    return manifest, leaves, directories


def _place(member: tarfile.TarInfo) -> str | None:
    """Where it stands in the tree; None: it is no part of the tree."""
    top, _, below = posixpath.normpath(member.name).partition("/")
    return f"/{below}" if top == _TOP and below else None


def _content(bundle: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = bundle.extractfile(member)
    return b"" if file is None else file.read()


def _still(content: bytes) -> File:
    return File(lambda _: content)
