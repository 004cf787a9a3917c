"""Opening files that anybody may have put there: regular ones alone, and never waiting for one.

A FIFO that is opened for reading is seen by who writes to it, and a device may do anything; so
what a name stands for is looked at before it is opened (O_PATH opens nothing).
"""

import errno
import os
import stat
from pathlib import Path

_USUAL_BYTES = 64 * 1024
"""Of a file that says nothing of its size, as those of /proc."""
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class NotRegularError(OSError):
    """It is a pipe, a directory, a device."""

    def __init__(self, what: str) -> None:
        super().__init__(errno.EINVAL, f"it is {what}, not a regular file")


def open_regular(path: str | Path, *, follow: bool = True) -> int:
    """A descriptor to read from; NotRegularError where it is anything else, OSError as open."""
    seen = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    return opened(seen)


def opened(seen: int) -> int:
    """Takes a descriptor of O_PATH, and gives one to read from."""
    try:
        mode = os.fstat(seen).st_mode
        if not stat.S_ISREG(mode):
            raise NotRegularError(_kind(mode))
        return os.open(f"/proc/self/fd/{seen}", READ)
    finally:
        os.close(seen)


def read_bounded(fd: int, longest_bytes: int) -> bytes | None:
    """All of a regular file, from its start; None where it is longer.

    Read at once: put together of pieces it would be held twice.
    """
    room = min(max(os.fstat(fd).st_size, _USUAL_BYTES), longest_bytes) + 1
    content = os.pread(fd, room, 0)
    if len(content) == room <= longest_bytes:  # it has grown meanwhile
        content = os.pread(fd, longest_bytes + 1, 0)
    return content if len(content) <= longest_bytes else None


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFDIR: "a directory",
        stat.S_IFLNK: "a symbolic link",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
