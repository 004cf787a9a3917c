"""Frames: checked pieces of a file that is written at its end and may be torn there.

Each frame: u32 bytes of payload, u32 crc32 of the payload, u32 crc32 of these two, then
the payload; little-endian. The head has a checksum of its own, since a damaged length
that points past the end of the file would pass for a torn frame.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

MAX_PAYLOAD_BYTES = 16 << 20
_SIZES = struct.Struct("<II")
_HEAD = struct.Struct("<III")


class FrameError(Exception):
    """The bytes at `offset` are no frame."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


def encode_frame(payload: bytes) -> bytes:
    sizes = _SIZES.pack(len(payload), zlib.crc32(payload))
    return sizes + zlib.crc32(sizes).to_bytes(4, "little") + payload


def read_frames(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Each whole frame from where the file stands: the offset behind it, and its payload.

    Ends before a last frame that was not written to its end; FrameError at anything else
    that is no frame.
    """
    offset = file.tell()
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        payload_bytes, checksum, head_checksum = _HEAD.unpack(head)
        if zlib.crc32(head[: _SIZES.size]) != head_checksum:
            raise FrameError(offset, "its head has a wrong checksum")
        if payload_bytes > MAX_PAYLOAD_BYTES:
            raise FrameError(offset, f"it is longer than {MAX_PAYLOAD_BYTES} bytes")
        payload = file.read(payload_bytes)
        if zlib.crc32(payload) != checksum:
            if not file.read(1):
                return  # the last: its pages may reach the disk in any order
            raise FrameError(offset, "it has a wrong checksum")
        offset += _HEAD.size + payload_bytes
        yield offset, payload
