"""Netlink as bytes: messages and their attributes, taken apart and put together.

Format: include/uapi/linux/netlink.h. The kernel's answers are taken apart as if anybody
had made them: whatever the bytes, what comes out is a message or MalformedError.
"""

import struct
from collections.abc import Iterator
from errno import EBADMSG

import msgspec

REQUEST = 1
MULTI = 2
DUMP_INTERRUPTED = 0x10
DUMP = 0x300

ERROR = 2
DONE = 3
FIRST_OWN_KIND = 16
"""Below it are kinds that mean the same in all parts of the kernel (NLMSG_MIN_TYPE)."""

_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_I32 = struct.Struct("=i")
_U32 = struct.Struct("=I")
_UNSIGNED = {1: struct.Struct("=B"), 2: struct.Struct("=H"), 4: _U32, 8: struct.Struct("=Q")}
_KIND_BITS = 0x3FFF
"""The two above say `nested` and `in network order` (NLA_TYPE_MASK)."""


class MalformedError(OSError):
    """These bytes are no netlink message, or not the one that should have come."""

    def __init__(self, what: str) -> None:
        super().__init__(EBADMSG, what)


class Message(msgspec.Struct, frozen=True):
    """One message without its header."""

    kind: int
    flags: int
    sequence: int
    payload: bytes

    @property
    def error(self) -> int:
        """Of ERROR and DONE: the errno it tells, 0 = none."""
        if len(self.payload) < _I32.size:
            raise MalformedError("an end of messages without its error number")
        code: int = _I32.unpack_from(self.payload)[0]
        if code > 0:
            raise MalformedError("an error number that is none")
        return -code


def messages(datagram: bytes) -> Iterator[Message]:
    """Every message in what came at once."""
    at = 0
    while at < len(datagram):
        if len(datagram) - at < _HEADER.size:
            raise MalformedError("a message shorter than its header")
        length, kind, flags, sequence, _ = _HEADER.unpack_from(datagram, at)
        if not _HEADER.size <= length <= len(datagram) - at:
            raise MalformedError("a message that does not end where it says")
        yield Message(kind, flags, sequence, datagram[at + _HEADER.size : at + length])
        at += _aligned(length)


def attributes(payload: bytes) -> Iterator[tuple[int, bytes]]:
    """Every attribute, by its number; what is nested is taken apart by another call."""
    at = 0
    while at < len(payload):
        if len(payload) - at < _ATTRIBUTE.size:
            raise MalformedError("an attribute shorter than its header")
        length, kind = _ATTRIBUTE.unpack_from(payload, at)
        if not _ATTRIBUTE.size <= length <= len(payload) - at:
            raise MalformedError("an attribute that does not end where it says")
        yield kind & _KIND_BITS, payload[at + _ATTRIBUTE.size : at + length]
        at += _aligned(length)


def number(value: bytes) -> int:
    """Of 1, 2, 4 or 8 bytes, in the order of this machine."""
    form = _UNSIGNED.get(len(value))
    if form is None:
        raise MalformedError(f"a number of {len(value)} bytes")
    result: int = form.unpack(value)[0]
    return result


def text(value: bytes) -> str:
    """Up to its NUL; what is not ASCII is shown as such."""
    return value.partition(b"\0")[0].decode("ascii", "replace")


def encode_message(kind: int, flags: int, sequence: int, payload: bytes = b"") -> bytes:
    """With port id 0: the kernel fills in whose it is."""
    length = _HEADER.size + len(payload)
    return _HEADER.pack(length, kind, flags, sequence, 0) + payload


def encode_attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(_aligned(length) - length)


def u32(value: int) -> bytes:
    return _U32.pack(value)


def _aligned(length: int) -> int:
    return (length + 3) & ~3
