"""Inside: files by the names that a job gives them, opened in the job's own root and nowhere else.

openat2 with RESOLVE_IN_ROOT (Linux 5.6) takes links as the job itself would. Where it is missing,
names are walked piece by piece and one that leads through a link is refused.
"""

import ctypes
import errno
import os
import stat
import struct
from pathlib import Path, PurePosixPath

from flapd.sources.follow.regular import opened, read_bounded

_OPENAT2 = 437
"""On all architectures (include/uapi/asm-generic/unistd.h)."""
_NO_MAGICLINKS, _IN_ROOT = 0x02, 0x10
_HOW = struct.Struct("=QQQ")
"""struct open_how of include/uapi/linux/openat2.h: flags, mode, resolve."""
_O_PATH = os.O_PATH | os.O_CLOEXEC
_MISSING = {errno.ENOSYS, errno.EPERM}
"""Of the kernel, or forbidden by a sandbox."""
_libc = ctypes.CDLL(None, use_errno=True)


def open_inside(root: Path, path: str) -> int:
    """A regular file, to read from; OSError as open, ELOOP where a link is in the way."""
    at = os.open(root, _O_PATH | os.O_DIRECTORY)
    try:
        return opened(_resolved(at, path))
    finally:
        os.close(at)


def read_inside(root: Path, path: str, longest_bytes: int) -> bytes | None:
    """The whole file; None where it is longer. OSError as open and read."""
    fd = open_inside(root, path)
    try:
        return read_bounded(fd, longest_bytes)
    finally:
        os.close(fd)


def _resolved(root: int, path: str) -> int:
    try:
        return openat2(root, path)
    except OSError as error:
        if error.errno not in _MISSING:
            raise
    return walk(root, path)


def openat2(root: int, path: str) -> int:
    """With O_PATH: it is not opened yet. OSError; ENOSYS where the kernel has no such call."""
    how = _HOW.pack(_O_PATH, 0, _IN_ROOT | _NO_MAGICLINKS)
    fd: int = _libc.syscall(_OPENAT2, root, os.fsencode(path), how, len(how))
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return fd


def walk(root: int, path: str) -> int:
    """The same without following any link."""
    at = os.dup(root)
    for piece in PurePosixPath("/", path).parts[1:]:
        if piece == "..":
            os.close(at)
            raise OSError(errno.ELOOP, "it leads upwards")
        try:
            below = os.open(piece, _O_PATH | os.O_NOFOLLOW, dir_fd=at)
        finally:
            os.close(at)
        at = below
        if stat.S_ISLNK(os.fstat(at).st_mode):
            os.close(at)
            raise OSError(errno.ELOOP, "it leads through a link")
    return at
