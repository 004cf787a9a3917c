"""A capture: what one node's ports looked like, in a file that can be sent and looked at elsewhere.

A gzipped tar, its members in this order: directories, regular files, relative links

    manifest.json    the Manifest below: {"format": 1, "errors": {path: errno name}, "hung": [path],
                     "unread": [path], ...}
    sysfs/...        the tree under `paths.sysfs`: the files of every RDMA device, its ports,
                     its PCI function and its netdevs, at their real places (`sysfs/devices/...`),
                     and the links that lead to them (`sysfs/class/infiniband/mlx5_0 ->
                     ../../devices/...`). A link may lead to a directory that holds nothing.
                     A file whose read failed, or was not reached, is there and empty
    versions.json    flapd, Python, kernel, libraries, drivers
    config.toml      the settings in force, without secrets
    agent/           what the agent answered: status.json, ports.json, metrics.txt
    ring/...         the ring of samples
    history.sqlite   the history; without black boxes where it would be too large

Only `manifest.json` and `sysfs/` are always there. Paths in the manifest are relative to
`sysfs/`, without a leading slash.
"""

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from flapd.model.errors import FlapdError

FORMAT = 1
MANIFEST = "manifest.json"
SYSFS = "sysfs"

_MODE, _DIRECTORY_MODE = 0o600, 0o700


class CaptureError(FlapdError):
    """A capture cannot be written or read."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What was captured when, and what could not be."""

    format: int = FORMAT
    flapd: str
    """Version of flapd."""
    node: str
    taken: str
    errors: dict[str, str] = {}
    """Path below `sysfs/` -> name of the errno that its read gave, such as EINVAL."""
    hung: list[str] = []
    """Paths whose read did not come back."""
    unread: list[str] = []
    """Paths that were not reached, since a read of the same device hung."""
    left_out: dict[str, str] = {}
    """Other parts that are missing -> why."""


class Member(NamedTuple):
    """One entry of the tar."""

    name: str
    content: bytes | Path = b""
    link: str | None = None
    """Where it leads, if it is a link."""
    is_directory: bool = False


def write_capture(path: Path, members: Iterable[Member], unix_seconds: int, *, force: bool) -> None:
    """Readable by its owner alone; the same members give the same bytes.

    CaptureError where the file is there already or cannot be written.
    """
    with _new(path, force=force) as file:
        try:
            _write(file, members, unix_seconds)
        except OSError as error:
            path.unlink()
            raise _unwritable(path, error) from error
        except BaseException:
            path.unlink()
            raise


def refuse_existing(path: Path, *, force: bool) -> None:
    """CaptureError where `write_capture` would come to nothing after all the work before it."""
    if os.path.lexists(path):
        if not force:
            raise CaptureError(f"{path} is there already; name another file, or use --force")
        if not stat.S_ISREG(path.lstat().st_mode):
            raise CaptureError(f"{path} is no regular file, and --force replaces only such")
    if not path.parent.is_dir():
        raise CaptureError(f"{path} cannot be written: {path.parent} is no directory")


def _new(path: Path, *, force: bool) -> BinaryIO:
    refuse_existing(path, force=force)
    try:
        if force:
            path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        return os.fdopen(os.open(path, flags, _MODE), "wb")
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> CaptureError:
    return CaptureError(f"{path} cannot be written: {error.strerror}")


def _write(file: BinaryIO, members: Iterable[Member], unix_seconds: int) -> None:
    with (
        gzip.GzipFile("", "wb", fileobj=file, mtime=unix_seconds) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for member in members:
            _add(tar, member, unix_seconds)


def _add(tar: tarfile.TarFile, member: Member, unix_seconds: int) -> None:
    entry = tarfile.TarInfo(member.name)
    entry.mtime = unix_seconds
    entry.mode = _DIRECTORY_MODE if member.is_directory else _MODE
    if member.is_directory:
        entry.type = tarfile.DIRTYPE
    elif member.link is not None:
        entry.type, entry.linkname = tarfile.SYMTYPE, member.link
    if isinstance(member.content, Path):
        entry.size = member.content.stat().st_size
        with member.content.open("rb") as content:
            tar.addfile(entry, content)
    else:
        entry.size = len(member.content)
        tar.addfile(entry, io.BytesIO(member.content))
