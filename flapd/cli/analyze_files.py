"""What `flapd analyze` reads: logs and dumps as they lie about, packed or not, in pieces.

Anybody may have written them. Nothing is unpacked but into pieces of bounded size.
"""

import bz2
import gzip
import importlib
import io
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from flapd.model.errors import FlapdError

CHUNK_BYTES = 64 << 10
STDIN = "-"
_STDIN = 0

_MOST_XZ_BYTES = 128 << 20
"""Of memory; xz -9 makes files that need 65 MiB, a hostile one asks for 4 GiB."""
_DUMP = re.compile(
    rb'\x80[\x02-\x05]|\s*\{\s*"(?:entries|version|pg_\w+|nccl_\w+|comm_\w+)"|\s*\[\s*\{\s*"'
)
_DAMAGED = (EOFError, ValueError, zlib.error, lzma.LZMAError, OSError)


class DamagedError(FlapdError):
    """It can be read no further."""


class _Content(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Opened(NamedTuple):
    name: str
    head: bytes
    """What it begins with."""
    rest: _Content
    file: io.FileIO
    changed_ns: int | None
    """Unix time of its last change; None of what has none."""

    @property
    def may_be_dump(self) -> bool:
        return _DUMP.match(self.head) is not None

    def pieces(self, passed: Callable[[int], None]) -> Iterator[bytes]:
        """All of it; `passed` is told how many bytes of the file are behind."""
        piece = self.head
        while piece:
            yield piece
            with _told():
                piece = self.rest.read(CHUNK_BYTES)
            if self.changed_ns is not None:
                passed(self.file.tell())


@contextmanager
def opened(name: str) -> Iterator[Opened]:
    """By its name, or "-" for stdin; FlapdError where it cannot be read, DamagedError later."""
    with _raw(name) as file:
        status = os.fstat(file.fileno())
        with _told():
            rest = _unpacked(io.BufferedReader(file, CHUNK_BYTES))
            head = rest.read(CHUNK_BYTES)
        changed_ns = status.st_mtime_ns if stat.S_ISREG(status.st_mode) else None
        yield Opened(name, head, rest, file, changed_ns)


def check(names: Iterable[str]) -> None:
    """FlapdError where one of them cannot be read, before hours are spent on the others."""
    for name in names:
        with _raw(name):
            pass


def size_bytes(name: str) -> int:
    """As it lies there; 0 where that is not known."""
    path = Path(name)
    return path.stat().st_size if name != STDIN and path.is_file() else 0


@contextmanager
def _raw(name: str) -> Iterator[io.FileIO]:
    try:
        file = (
            io.FileIO(_STDIN, closefd=False) if name == STDIN else io.FileIO(name, opener=_at_once)
        )
    except (OSError, ValueError) as error:
        raise FlapdError(f"{name} cannot be read: {getattr(error, 'strerror', error)}") from None
    with file:
        if name != STDIN and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FlapdError(f"{name} is no regular file, and nothing else is read")
        yield file


def _at_once(path: str, flags: int) -> int:
    """A FIFO with nobody at its other end must not keep us."""
    return os.open(path, flags | os.O_NONBLOCK)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise DamagedError(f"it is damaged: {error}") from error


def _unpacked(raw: io.BufferedReader) -> _Content:
    """By what it begins with, whatever it is called."""
    head = raw.peek(8)
    for magic, unpack in _PACKERS.items():
        if head.startswith(magic):
            return unpack(raw)
    return raw


class _Xz:
    """As lzma.LZMAFile, which knows no limit of memory."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw
        self._stream = lzma.LZMADecompressor(memlimit=_MOST_XZ_BYTES)

    def read(self, size: int, /) -> bytes:
        piece = b""
        while not piece:
            packed = b""
            if self._stream.eof:
                packed = self._stream.unused_data.lstrip(b"\0") or self._raw.read(CHUNK_BYTES)
                if not packed.lstrip(b"\0"):
                    return b""
                self._stream = lzma.LZMADecompressor(memlimit=_MOST_XZ_BYTES)
            elif self._stream.needs_input:
                packed = self._raw.read(CHUNK_BYTES)
                if not packed:
                    raise EOFError("it is cut off")
            piece = self._stream.decompress(packed, size)
        return piece


def _of_zstd(raw: io.BufferedReader) -> Any:
    try:
        zstd = importlib.import_module("compression.zstd")  # Python 3.14 and later
    except ImportError:
        raise FlapdError(
            "zstd is not known to this Python: `zstd -dc FILE | flapd analyze -` would be right"
        ) from None
    return zstd.ZstdFile(raw)


def _of_gzip(raw: io.BufferedReader) -> _Content:
    return gzip.GzipFile(fileobj=raw)


_PACKERS: dict[bytes, Callable[[io.BufferedReader], _Content]] = {
    b"\x1f\x8b": _of_gzip,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": _Xz,
    b"\x28\xb5\x2f\xfd": _of_zstd,
}
"""First bytes -> what reads it."""
