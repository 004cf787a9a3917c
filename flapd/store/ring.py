"""The ring of samples: one preallocated file in memory per port and tier, which outlives us.

One writer, readers without locks: a reader copies the file at once and believes only
rows whose checksum holds and whose sequence number belongs to their place, since a
sequence number written last is no barrier between processes on every machine.
"""

import mmap
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec

from flapd.store.files import create_file, make_directory
from flapd.store.ring_layout import (
    Description,
    RingError,
    RingRow,
    RowLayout,
    decode_header,
    encode_header,
    last_sequence,
    valid_rows,
)

__all__ = ["Ring", "RingError", "RingRow", "RingWriter", "read_ring", "ring_files", "ring_path"]

_SUFFIX = ".ring"
_ROWS_A_STRETCH = 200
_LONGEST_HEADER_BYTES = 1 << 20


def ring_path(directory: Path, key: str, tier: str) -> Path:
    """Where the ring of this port and tier lies; no two pairs share a name.

    quote() gives neither `+` nor `@`, so `+` can stand for the slash of a key and `@`
    can end it.
    """
    name = quote(key, safe=":").replace("%2F", "+")
    return directory / f"{name}@{quote(tier, safe='')}{_SUFFIX}"


def ring_files(directory: Path) -> list[Path]:
    """All rings of the directory by name; none where there is no directory."""
    return sorted(directory.glob(f"*{_SUFFIX}"))


class Ring(Description, frozen=True, kw_only=True):
    """One ring as its header describes it."""

    path: Path

    def rows(self, since_ns: int = 0, only: Collection[str] | None = None) -> Iterator[RingRow]:
        """Rows with before_ns > since_ns as the file stands now, oldest first.

        Rows that are torn or being overwritten are left out, and of each row all columns but
        `only`. RingError where another ring took its place since it was opened.
        """
        now, body = _read(self.path)
        if now != self:
            raise RingError(f"{self.path} was replaced by another ring: open it again")
        layout = RowLayout(self.columns)
        names = self.columns if only is None else only
        for number, row in enumerate(valid_rows(layout, self.capacity, body, since_ns)):
            if number % _ROWS_A_STRETCH == 0:
                time.sleep(0)  # lets other threads of the agent run
            yield layout.unpack(row, names)

    def begun_ns(self) -> int | None:
        """before_ns of the first row there ever was; None where it is overwritten, or none was.

        RingError where there is no ring any more.
        """
        _now, body = _read(self.path)
        layout = RowLayout(self.columns)
        if last_sequence(layout, self.capacity, body) > self.capacity:
            return None
        first = next(valid_rows(layout, self.capacity, body, since_ns=-1), None)
        return None if first is None else layout.unpack(first, ()).before_ns


def read_ring(path: Path) -> Ring:
    """The ring in this file; RingError where there is none."""
    return _read(path, _LONGEST_HEADER_BYTES)[0]


def _read(path: Path, at_most_bytes: int = -1) -> tuple[Ring, memoryview]:
    try:
        with path.open("rb") as file:
            content = file.read(at_most_bytes)
        description, header_bytes = decode_header(content)
    except OSError as error:
        raise RingError(f"{path} cannot be read: {error.strerror}") from error
    except RingError as error:
        raise RingError(f"{path} is no ring of flapd: {error}") from error
    ring = Ring(path=path, **msgspec.structs.asdict(description))
    return ring, memoryview(content)[header_bytes:]


class RingWriter:
    """The only writer of a ring.

    Goes on behind the last row of a file with the same description, else makes a new one
    in its place. OSError where the file cannot be made, a full memory file system
    included; once it is made, `append` cannot fail for want of space.
    """

    def __init__(
        self,
        path: Path,
        *,
        key: str,
        counted_by: str,
        tier: str,
        columns: Sequence[str],
        rows: int,
        boot: str,
    ) -> None:
        ring = Ring(
            path=path,
            key=key,
            counted_by=counted_by,
            tier=tier,
            boot=boot,
            columns=tuple(columns),
            capacity=rows,
        )
        header = encode_header(ring)
        self._layout = RowLayout(ring.columns)
        self._rows = rows
        self._first_row = len(header)
        size = len(header) + rows * self._layout.row_bytes
        sequence = _last_sequence(ring)
        if sequence is None:
            _create(path, header, size)
        self._sequence = sequence or 0
        self._map = _map(path)

    def append(self, before_ns: int, after_ns: int, reads: int, values: Mapping[str, int]) -> None:
        """Write one row over the oldest; names that are no column are left out."""
        start = self._first_row + self._sequence % self._rows * self._layout.row_bytes
        self._sequence += 1
        row = self._layout.pack(self._sequence, before_ns, after_ns, reads, values)
        self._map[start : start + len(row)] = row

    def close(self) -> None:
        self._map.close()


def _last_sequence(wanted: Ring) -> int | None:
    """Sequence number of the last row, 0 before the first; None where a new file is needed."""
    try:
        found, body = _read(wanted.path)
    except RingError:
        return None
    layout = RowLayout(found.columns)
    if found != wanted or len(body) != wanted.capacity * layout.row_bytes:
        return None
    return last_sequence(layout, found.capacity, body)


def _create(path: Path, header: bytes, size: int) -> None:
    """Put a new ring in place at once.

    Its space is taken now: a write to a mapping that finds no space raises SIGBUS.
    """
    make_directory(path.parent)
    unfinished = path.with_name(path.name + ".new")
    unfinished.unlink(missing_ok=True)
    descriptor = create_file(unfinished)
    try:
        os.posix_fallocate(descriptor, 0, size)
        os.pwrite(descriptor, header, 0)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _map(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)
