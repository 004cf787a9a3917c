"""Files of sysfs and procfs: read whole, in one call, with the reason where that fails."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

AnyPath: TypeAlias = str | Path
"""Discovery looks every second, and to put a `Path` together takes longer than to read it."""

LONGEST_BYTES = 4096
"""sysfs gives at most a page a read (fs/sysfs/file.c)."""


def reason_of(error: OSError) -> str:
    """`EIO`, `ENODEV`: the name people search for."""
    return errno.errorcode.get(error.errno or 0, "unknown error")


_ABSENT = {
    *(errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO),
    *(errno.EINVAL, errno.EOPNOTSUPP, errno.EISDIR, errno.ESRCH),
}
"""Errors which say that there is no such thing; all others, that it cannot be told now."""
_LONGEST_NAME_BYTES = 64


def read_text(path: AnyPath) -> str | None:
    """The file's first line; None where there is none, OSError where that cannot be told."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            raw = os.pread(fd, LONGEST_BYTES, 0)
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise
    return raw.decode("utf-8", "replace").partition("\n")[0].strip()


def is_there(path: AnyPath) -> bool:
    return os.path.exists(path)  # noqa: PTH110


def list_names(directory: AnyPath) -> list[str]:
    """Names in a directory, sorted; none where it is not there. OSError where it can't be read.

    Left out is what the kernel names nothing: too long, or not printable ASCII.
    """
    try:
        names = os.listdir(directory)  # noqa: PTH208 - names are all that is wanted
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(
        name
        for name in names
        if len(name) <= _LONGEST_NAME_BYTES and name.isascii() and name.isprintable()
    )


class KeptFile:
    """One file read again and again on a kept descriptor.

    A descriptor outlives its device and then gives ENODEV, also when the device is
    back under the same name: after any failure the file is opened anew.
    """

    __slots__ = ("_path", "fd")

    def __init__(self, path: Path) -> None:
        self._path = path
        self.fd = -1
        """-1 while it is closed."""

    def read(self) -> bytes:
        """The content now; raises OSError as open or read does."""
        if self.fd < 0:
            self.fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return os.pread(self.fd, LONGEST_BYTES, 0)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            with suppress(OSError):  # the device behind it may be gone; the number is free anyway
                os.close(fd)
