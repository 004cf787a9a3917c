"""Files of flapd: readable by its group, by nobody else, whatever the umask says."""

import os
from pathlib import Path

DIRECTORY_MODE = 0o750
FILE_MODE = 0o640


def make_directory(directory: Path) -> None:
    """The directory exists afterwards; one that was there keeps its mode."""
    if directory.is_dir():
        return
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(DIRECTORY_MODE)


def create_file(path: Path) -> int:
    """A descriptor to read and write a new, empty file; FileExistsError if it is there."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    os.fchmod(descriptor, FILE_MODE)
    return descriptor


_VOLATILE = {"tmpfs", "ramfs", "rootfs", "overlay", "aufs"}
"""Gone with the machine's next boot, or with the container."""
_MOUNTS = Path("/proc/self/mountinfo")


def is_volatile(path: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether this path lies on a file system that does not last; False where that is not known.

    Lines: id, parent, major:minor, root, mount point, options, optional fields, -, type, ...
    (Documentation/filesystems/proc.rst, 3.5).
    """
    device = path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return False
    fields = [line.partition(" - ") for line in lines]
    return any(
        mount.split()[2] == number and described.split()[0] in _VOLATILE
        for mount, _, described in fields
        if described
    )
