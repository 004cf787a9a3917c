"""Given: a file that somebody names to be read."""

from pathlib import Path

from flapd.model.errors import FlapdError


def regular(path: Path) -> Path:
    """The same; FlapdError where it is a device, FIFO or directory: those need not ever end."""
    if path.exists() and not path.is_file():
        raise FlapdError(f"{path} is no regular file, and nothing else is read")
    return path
