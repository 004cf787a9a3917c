"""Cursor: the position at which the next page of a list goes on, as a client hands it back."""

import base64
import binascii

import msgspec

from flapd.model.errors import FlapdError

Position = tuple[int, str]


def encode_cursor(position: Position) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def decode_cursor(cursor: str) -> Position:
    """The position that `next` of a page stands for."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
        return msgspec.json.decode(raw, type=Position)
    except (binascii.Error, ValueError) as error:
        raise FlapdError(f"cursor {cursor!r} is not the `next` of a page") from error
