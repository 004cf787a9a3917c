"""Position: how far a log was read, so that a restart goes on from there."""

import os
from hashlib import blake2b

import msgspec

_MARK_BYTES = 1024
_MOST = 4096


class Mark(msgspec.Struct, frozen=True):
    """What stands at a file's start and before an offset: who has the same was read so far.

    Numbers of files are used again, and files are emptied, copied and written anew.
    """

    offset: int = 0
    digest: str = ""

    def is_in(self, fd: int) -> bool:
        return self.offset == 0 or mark_at(fd, self.offset) == self


def mark_at(fd: int, offset: int) -> Mark:
    start = os.pread(fd, min(offset, _MARK_BYTES), 0)
    begin = max(0, offset - _MARK_BYTES)
    end = os.pread(fd, offset - begin, begin)
    return Mark(offset, blake2b(start + end, digest_size=16).hexdigest())


class Position(msgspec.Struct, frozen=True, array_like=True, tag="position"):
    """All before the mark was told."""

    key: str
    """File system and name of the file."""
    read_ns: int
    """Unix time."""
    inode: int = 0
    mark: Mark = Mark()
    generation: int = 0
    """How often it was emptied and written anew."""
    cursor: str = ""
    """Of the journal, instead of a mark."""
    jobs: tuple[str, ...] = ()
    """Whose log it is."""


def encode(positions: dict[str, Position]) -> bytes:
    """Of as many as are remembered, the last read."""
    newest = sorted(positions.values(), key=lambda one: one.read_ns)[-_MOST:]
    return msgspec.json.encode(newest)


def decode(content: bytes) -> dict[str, Position]:
    """Nothing where it is damaged: then logs are followed from their end, as at the first start."""
    try:
        found = msgspec.json.decode(content, type=list[Position])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return {position.key: position for position in found}
