"""The layout of a ring file: a header that names the columns, then rows of equal size.

    magic, version, sizes and checksum of the description   (PREFIX)
    description: JSON of Description, padded to whole pages
    rows: sequence, before_ns, after_ns, reads, presence bits, columns, crc32

All numbers are little-endian; all cells of a row have 64 bits, so that they lie aligned.
"""

import struct
import zlib
from collections.abc import Collection, Iterator, Mapping

import msgspec

from flapd.model.errors import FlapdError

MAGIC = b"flapring"
VERSION = 1
_PREFIX = struct.Struct("<8sIIII")  # magic, version, header bytes, description bytes, its crc32
_PAGE_BYTES = 8192
_MASK = (1 << 64) - 1


class RingError(FlapdError):
    """A file is not a ring that this version can read."""


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """What a ring file says of itself."""

    key: str
    counted_by: str
    """Whose count the port's witness is."""
    tier: str
    boot: str
    columns: tuple[str, ...]
    capacity: int
    """Rows it holds; the oldest is overwritten by the next."""


class RingRow(msgspec.Struct, frozen=True):
    """One row; a column that was not read is not in `values`."""

    before_ns: int
    after_ns: int
    reads: int
    values: dict[str, int]


def encode_header(description: Description) -> bytes:
    """The header, padded to whole pages."""
    fields = {name: getattr(description, name) for name in Description.__struct_fields__}
    text = msgspec.json.encode(fields)
    pages = -(-(_PREFIX.size + len(text)) // _PAGE_BYTES)
    header_bytes = pages * _PAGE_BYTES
    prefix = _PREFIX.pack(MAGIC, VERSION, header_bytes, len(text), zlib.crc32(text))
    return (prefix + text).ljust(header_bytes, b"\0")


def decode_header(content: bytes) -> tuple[Description, int]:
    """The description at the start of `content`, and the offset of the first row in bytes."""
    if len(content) < _PREFIX.size:
        raise RingError("it is too short for a ring")
    magic, version, header_bytes, text_bytes, checksum = _PREFIX.unpack_from(content)
    if magic != MAGIC:
        raise RingError("it does not begin as a ring does")
    if version != VERSION:
        raise RingError(f"it has ring version {version}, this flapd reads {VERSION}")
    text = content[_PREFIX.size : _PREFIX.size + text_bytes]
    if zlib.crc32(text) != checksum:
        raise RingError("its header is damaged")
    try:
        return msgspec.json.decode(text, type=Description), header_bytes
    except msgspec.MsgspecError as error:
        raise RingError(f"its header is not understood: {error}") from error


class RowLayout:
    """Where the cells of a row lie; packs and unpacks rows."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns
        self._index = {name: index for index, name in enumerate(columns)}
        self._presence_bytes = -(-len(columns) // 64) * 8
        cells = f"<4Q{self._presence_bytes}s{len(columns)}Q"
        self._cells = struct.Struct(cells)
        self._checksum = struct.Struct("<Q")
        self.row_bytes = self._cells.size + self._checksum.size
        self._stamps = struct.Struct(f"<QQ{self.row_bytes - 16}x")

    def pack(
        self, sequence: int, before_ns: int, after_ns: int, reads: int, values: Mapping[str, int]
    ) -> bytes:
        """A whole row; values whose name is no column are left out."""
        cells = [0] * len(self._columns)
        presence = 0
        value_of = values.get
        for index, name in enumerate(self._columns):
            value = value_of(name)
            if value is not None:
                cells[index] = value & _MASK
                presence |= 1 << index
        bits = presence.to_bytes(self._presence_bytes, "little")
        row = self._cells.pack(sequence, before_ns, after_ns, reads, bits, *cells)
        return row + self._checksum.pack(zlib.crc32(row))

    def stamps(self, rows: memoryview) -> Iterator[tuple[int, int]]:
        """Sequence and before_ns of each row, unchecked."""
        return self._stamps.iter_unpack(rows)

    def is_whole(self, row: memoryview) -> bool:
        cells = row[: self._cells.size]
        return self._checksum.unpack_from(row, self._cells.size) == (zlib.crc32(cells),)

    def unpack(self, row: memoryview, only: Collection[str]) -> RingRow:
        """The row with those of its values that are in `only`."""
        _sequence, before_ns, after_ns, reads, bits, *cells = self._cells.unpack_from(row)
        presence = int.from_bytes(bits, "little")
        wanted = ((name, self._index[name]) for name in only if name in self._index)
        values = {name: cells[index] for name, index in wanted if presence >> index & 1}
        return RingRow(before_ns, after_ns, reads, values)


def valid_rows(
    layout: RowLayout, capacity: int, body: memoryview, since_ns: int
) -> Iterator[memoryview]:
    """Each whole row with before_ns > since_ns, oldest first."""
    size = layout.row_bytes
    for _sequence, start in _places(layout, capacity, body, since_ns):
        row = body[start : start + size]
        if layout.is_whole(row):
            yield row


def last_sequence(layout: RowLayout, capacity: int, body: memoryview) -> int:
    """Sequence number of the last whole row; 0 where there is none."""
    size = layout.row_bytes
    places = reversed(_places(layout, capacity, body, since_ns=-1))
    whole = (at for at, start in places if layout.is_whole(body[start : start + size]))
    return next(whole, 0)


def _places(
    layout: RowLayout, capacity: int, body: memoryview, since_ns: int
) -> list[tuple[int, int]]:
    """Sequence and offset of each row that is in its place, unchecked, oldest first."""
    size = layout.row_bytes
    present = min(capacity, len(body) // size)
    found = [
        (sequence, slot * size)
        for slot, (sequence, before_ns) in enumerate(layout.stamps(body[: present * size]))
        if before_ns > since_ns and sequence and (sequence - 1) % capacity == slot
    ]
    found.sort()
    return found
