"""Mutations of what is well-formed, as a seed chooses them."""

import random
from collections.abc import Iterator, Sequence

_TELLING = (
    b"\x00",
    b"\xff",
    b"\n",
    b"\r",
    b"\x1b[31m",
    b"\xed\xa0\x80",
    b"999999999999999999999",
    b"-1",
    b"0",
    b"[",
    b"]",
    b"<",
    b"{",
    b'"',
    b" P ",
    b" F ",
    b"2026-11-30T08:32:11.5Z stdout P ",
)
"""What parsers stumble over."""
_LONGEST = 64 * 1024


def mutated(corpus: Sequence[bytes], chance: random.Random) -> bytes:
    """Some of the corpus, changed at a few places."""
    data = chance.choice(corpus)
    for _ in range(chance.choice((1, 1, 2, 4, 8, 16))):
        data = _once(data, corpus, chance)[:_LONGEST]
    return data


def _once(data: bytes, corpus: Sequence[bytes], chance: random.Random) -> bytes:
    begin = chance.randrange(len(data) + 1)
    end = min(len(data), begin + chance.choice((0, 1, 1, 2, 8, 64)))
    other = chance.choice(corpus)
    place = chance.randrange(len(other) + 1)
    middle = chance.choice(
        (
            b"",
            bytes([chance.randrange(256)]),
            chance.choice(_TELLING),
            chance.choice(_TELLING) * chance.choice((1, 10, 1000)),
            data[begin:end] * chance.choice((2, 50)),
            other[place : place + 200],
        )
    )
    return data[:begin] + middle + data[end:]


def cuts(length: int, chance: random.Random) -> Iterator[tuple[int, int]]:
    """Pieces that cover so much, in order."""
    begin = 0
    while begin < length:
        end = min(length, begin + chance.choice((1, 7, 100, 1000, 70_000)))
        yield begin, end
        begin = end
