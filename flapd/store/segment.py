"""Segment: the ring rows of one port, tier and slot, packed for the history.

Table: before_ns, after_ns - before_ns, reads, presence words (64 columns each), then the
columns, one row a sample. Packed: each of these as differences modulo 2**64, an absent value
as no difference; little-endian; the first bytes of all, then the second bytes of all, and so
on; deflated (zlib, whose checksum finds damage).
"""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from flapd.model.errors import FlapdError
from flapd.store.ring_layout import RingRow

_MASK = (1 << 64) - 1
_WORD_BYTES = 8
_STAMPS = 3


class SegmentError(FlapdError):
    """The bytes are no segment of these columns."""


def pack_segment(columns: Sequence[str], rows: Sequence[RingRow]) -> bytes:
    """Rows in order of time; values whose name is no column are left out."""
    table = zip(*(_cells(columns, row) for row in rows), strict=True)
    cells = [difference for column in table for difference in _differences(column)]
    raw = struct.pack(f"<{len(cells)}Q", *cells)
    return zlib.compress(b"".join(raw[place::_WORD_BYTES] for place in range(_WORD_BYTES)))


def unpack_segment(columns: Sequence[str], packed: bytes) -> list[RingRow]:
    """The rows; SegmentError where they are damaged."""
    try:
        planes = zlib.decompress(packed)
    except zlib.error as error:
        raise SegmentError(f"a segment of the black box is damaged: {error}") from error
    words = -(-len(columns) // 64)
    width = _STAMPS + words + len(columns)
    height, rest = divmod(len(planes), width * _WORD_BYTES)
    if rest:
        raise SegmentError("a segment of the black box does not fit its columns")
    raw = bytearray(len(planes))
    for place in range(_WORD_BYTES):
        raw[place::_WORD_BYTES] = planes[place * width * height : (place + 1) * width * height]
    cells = struct.unpack(f"<{width * height}Q", raw)
    table = [
        list(accumulate(cells[start : start + height], lambda total, more: total + more & _MASK))
        for start in range(0, width * height, height or 1)
    ]
    return [_row(columns, words, cells) for cells in zip(*table, strict=True)]


def _cells(columns: Sequence[str], row: RingRow) -> list[int | None]:
    values = [row.values.get(name) for name in columns]
    presence = sum(1 << index for index, value in enumerate(values) if value is not None)
    words = [presence >> start & _MASK for start in range(0, len(columns), 64)]
    return [row.before_ns, row.after_ns - row.before_ns, row.reads, *words, *values]


def _differences(column: Iterable[int | None]) -> Iterator[int]:
    last = 0
    for value in column:
        yield 0 if value is None else (value - last) & _MASK
        last = last if value is None else value


def _row(columns: Sequence[str], words: int, cells: Sequence[int]) -> RingRow:
    before_ns, lasted_ns, reads, *rest = cells
    presence = sum(word << 64 * index for index, word in enumerate(rest[:words]))
    values = {
        name: value
        for index, (name, value) in enumerate(zip(columns, rest[words:], strict=True))
        if presence >> index & 1
    }
    return RingRow(before_ns, before_ns + lasted_ns & _MASK, reads, values)
