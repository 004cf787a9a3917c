"""Opening a capture that somebody sent: nothing of it lands outside the directory meant for it."""

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import msgspec
from msgspec.structs import replace

from flapd.core.fabric.parse import value_names
from flapd.core.fabric.view import PortView
from flapd.model.port import Port
from flapd.sources.capture import FORMAT, MANIFEST, SYSFS, CaptureError, Manifest
from flapd.sources.capture_files import place_of
from flapd.sources.plan import plan_of
from flapd.sources.settings import PortsSettings
from flapd.sources.survey import survey

MOST_MEMBERS = 200_000
LARGEST_FILE_BYTES = 64 << 10
LARGEST_BYTES = 256 << 20
"""Of manifest and tree together, unpacked."""


class _Bounded:
    """Reads no more than so many bytes in all: a small file can unpack to any size."""

    def __init__(self, file: gzip.GzipFile, most_bytes: int) -> None:
        self._file = file
        self._left = most_bytes

    def read(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise tarfile.ReadError("it unpacks to more than any capture is")
        return self._file.read(size)


def open_capture(path: Path, into: Path) -> Manifest:
    """Lays its `sysfs/` out in the empty directory `into`; CaptureError where it is no capture."""
    with _told(path), gzip.open(path, "rb") as packed:
        bounded = _Bounded(packed, LARGEST_BYTES)
        with tarfile.open(fileobj=bounded, mode="r|") as tar:  # type: ignore[call-overload]
            manifest = _manifest(path, tar)
            _lay_out(path, tar, into)
    return manifest


def captured_ports(path: Path, into: Path) -> tuple[Manifest, list[PortView]]:
    """Every port of it as one reading shows it, failed reads included; `into` is for its tree."""
    manifest = open_capture(path, into)
    sysfs = into / SYSFS
    views = survey(sysfs, PortsSettings())
    return manifest, [_with_errors(view, sysfs, manifest) for view in views]


def _with_errors(view: PortView, sysfs: Path, manifest: Manifest) -> PortView:
    """A file whose read failed is laid out empty: what it said then is in the manifest."""
    reasons = dict(_reasons(view.port, sysfs, manifest))
    told = {name: reasons.get(name, why) for name, why in view.errors.items()}
    return replace(view, errors=told)


def _reasons(port: Port, sysfs: Path, manifest: Manifest) -> Iterator[tuple[str, str]]:
    recorded = {
        **manifest.errors,
        **dict.fromkeys(manifest.hung, "its read hung"),
        **dict.fromkeys(manifest.unread, "not read, since another read hung"),
    }
    for name, path in plan_of(sysfs, port).paths.items():
        place = place_of(sysfs, str(path.relative_to(sysfs)))
        if place is not None and place.path in recorded:
            yield from ((value, recorded[place.path]) for value in value_names(name))


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise CaptureError(f"{path}: there is no such file") from None
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CaptureError(f"{path} is no capture of flapd, or damaged: {error}") from error
    except OSError as error:
        raise CaptureError(f"{path} cannot be read: {error.strerror or error}") from error


def _manifest(path: Path, tar: tarfile.TarFile) -> Manifest:
    first = tar.next()
    if first is None or first.name != MANIFEST or not first.isreg():
        raise CaptureError(f"{path} is no capture of flapd: it does not begin with {MANIFEST}")
    try:
        manifest = msgspec.json.decode(_content(tar, first), type=Manifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CaptureError(f"{path}: its {MANIFEST} is not right: {error}") from error
    if manifest.format != FORMAT:
        raise CaptureError(
            f"{path} has format {manifest.format} and this flapd knows {FORMAT}: use a newer one"
        )
    return manifest


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(entry)
    assert file is not None, "it is a regular file"
    return file.read()


def _lay_out(path: Path, tar: tarfile.TarFile, into: Path) -> None:
    """Every entry is made anew at a path without links, so that none is written through one."""
    (into / SYSFS).mkdir()
    is_directory: dict[str, bool] = {SYSFS: True}
    while (entry := tar.next()) is not None and entry.name.startswith(f"{SYSFS}/"):
        why = _why_bad(entry, is_directory)
        if why is not None:
            raise CaptureError(f"{path} is not used: in it is {entry.name!r}, and {why}")
        is_directory[entry.name] = entry.isdir()
        _make(tar, entry, into / entry.name)


def _why_bad(entry: tarfile.TarInfo, is_directory: dict[str, bool]) -> str | None:
    name = PurePosixPath(entry.name)
    if ".." in name.parts or str(name) != entry.name or not entry.name.isprintable():
        return "that is no plain path"
    if entry.name in is_directory or len(is_directory) >= MOST_MEMBERS:
        return "it is one too many"
    if any(is_directory.get(str(parent)) is False for parent in name.parents):
        return "it lies below what is no directory"
    if entry.issym():
        return None if _stays_inside(name, entry.linkname) else "its link leads elsewhere"
    if not (entry.isreg() or entry.isdir()):
        return "it is no file, directory or symbolic link"
    return "no file of sysfs is that large" if entry.size > LARGEST_FILE_BYTES else None


def _stays_inside(name: PurePosixPath, target: str) -> bool:
    """Steps up come first, where they are steps between real directories, and are not too many."""
    parts = PurePosixPath(target).parts
    ups = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    below_sysfs = len(name.parent.parts) - 1
    return not target.startswith("/") and ".." not in parts[ups:] and ups <= below_sysfs


def _make(tar: tarfile.TarFile, entry: tarfile.TarInfo, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if entry.isdir():
        place.mkdir(exist_ok=True)
    elif entry.issym():
        place.symlink_to(entry.linkname)
    else:
        place.write_bytes(_content(tar, entry))
