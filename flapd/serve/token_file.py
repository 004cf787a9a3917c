"""The file with a token in it, as who asks for one and who shows one read it."""

import os
import stat
from pathlib import Path

from flapd.model.errors import FlapdError

_LARGEST_TOKEN_BYTES = 4096


def read_token(path: Path) -> bytes:
    """The one line of a token file; FlapdError where there is none."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise FlapdError("is no regular file; one with the token in it would be right")
            token = file.read(_LARGEST_TOKEN_BYTES + 1).strip()
    except OSError as error:
        raise FlapdError(f"cannot be read: {error.strerror}") from None
    if not token:
        raise FlapdError("is empty; one line with the token would be right")
    if len(token) > _LARGEST_TOKEN_BYTES or not token.isascii() or len(token.split()) > 1:
        raise FlapdError("one line with a token of at most 4096 ASCII characters would be right")
    return token


def _open_at_once(path: str, flags: int) -> int:
    """A FIFO with nobody at its other end keeps nobody."""
    return os.open(path, flags | os.O_NONBLOCK)
