"""Size: a number of bytes as people write it in a configuration."""

import re
from typing import Any

import msgspec

_UNIT_BYTES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
_WRITTEN = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)")
_LARGEST_BYTES = 1 << 50

RIGHT_SIZE = 'a number of bytes or a string such as "500MB", "2GiB"'


class Size(msgspec.Struct, frozen=True, order=True):
    """So many bytes, not negative."""

    bytes: int

    def __str__(self) -> str:
        for unit in ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB"):
            if self.bytes and self.bytes % _UNIT_BYTES[unit] == 0:
                return f"{self.bytes // _UNIT_BYTES[unit]}{unit}"
        return f"{self.bytes}B"


def parse_size(raw: Any) -> Size:
    """A whole number of bytes or a string with a unit; ValueError says what would be right."""
    number = -1
    if isinstance(raw, str):
        written = _WRITTEN.fullmatch(raw.strip())
        number = round(float(written[1]) * _UNIT_BYTES[written[2]]) if written else -1
    elif isinstance(raw, int) and not isinstance(raw, bool):
        number = raw
    if not 0 <= number <= _LARGEST_BYTES:
        raise ValueError(RIGHT_SIZE)
    return Size(number)
