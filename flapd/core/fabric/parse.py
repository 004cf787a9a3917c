"""Parsers of what the kernel prints for a port: bytes in, numbers out.

Formats: drivers/infiniband/core/sysfs.c (state_show, phys_state_show, rate_show,
show_pma_counter), net/core/net-sysfs.c. A value that is no such text raises
`UnreadableError`, whose message is short and safe to show.
"""

import re
from collections.abc import Callable

from flapd.core.fabric.catalogue import (
    FLAGS,
    PHYSICAL_STATE,
    RATE_FILE,
    RATE_MBPS,
    STATE,
    WIDTH_LANES,
    bits_of,
)
from flapd.model.errors import FlapdError

_STATE = re.compile(rb"(\d{1,3}): [ -~]{1,40}\n?")
_RATE = re.compile(rb"(\d{1,5})(\.5)? Gb/sec \((\d{1,2})X(?: ?[A-Z0-9]{1,8})?\)\n?")
_FLAGS = re.compile(rb"0x([0-9a-f]{1,8})\n?")
_NO_PMA = b"N/A (no PMA)"
_U64_DIGITS = 20


class UnreadableError(FlapdError):
    """The file was read and does not hold what it should."""


def parse_number(raw: bytes, bits: int = 64) -> int:
    """A decimal counter of so many bits."""
    text = raw.strip()
    if text.isdigit() and len(text) <= _U64_DIGITS:
        if (value := int(text)) < 1 << bits:
            return value
        raise UnreadableError(f"more than {bits} bits: {_shown(raw)}")
    if text == _NO_PMA:  # kernels before 4.20 print this instead of failing the read
        raise UnreadableError("no PMA")
    raise UnreadableError(f"not a number: {_shown(raw)}")


def parse_state(raw: bytes) -> int:
    """`4: ACTIVE`, `5: LinkUp`: the number."""
    match = _STATE.fullmatch(raw)
    if match is None:
        raise UnreadableError(f"not a state: {_shown(raw)}")
    return int(match[1])


def parse_rate(raw: bytes) -> dict[str, int]:
    """`400 Gb/sec (4X NDR)`, `2.5 Gb/sec (1X SDR)`, `10 Gb/sec (4X)`: Mb/s and lanes."""
    match = _RATE.fullmatch(raw)
    if match is None:
        raise UnreadableError(f"not a rate: {_shown(raw)}")
    half = 500 if match[2] else 0
    return {RATE_MBPS: int(match[1]) * 1000 + half, WIDTH_LANES: int(match[3])}


def parse_flags(raw: bytes) -> int:
    """`0x1003` of a netdev (net/core/net-sysfs.c, fmt_hex)."""
    match = _FLAGS.fullmatch(raw)
    if match is None:
        raise UnreadableError(f"not flags: {_shown(raw)}")
    return int(match[1], 16)


def parser_of(name: str) -> Callable[[bytes], dict[str, int]]:
    """What turns the content of this file into values."""
    if name == RATE_FILE:
        return parse_rate
    if name in {STATE, PHYSICAL_STATE}:
        return lambda raw: {name: parse_state(raw)}
    if name == FLAGS:
        return lambda raw: {FLAGS: parse_flags(raw)}
    bits = bits_of(name)
    return lambda raw: {name: parse_number(raw, bits)}


def value_names(name: str) -> tuple[str, ...]:
    """Names of the values this file holds."""
    return (RATE_MBPS, WIDTH_LANES) if name == RATE_FILE else (name,)


def _shown(raw: bytes) -> str:
    return repr(raw[:24].decode("ascii", "replace"))
