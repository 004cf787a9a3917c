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
