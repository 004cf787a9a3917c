"""Draws: numbers that look random and are the same each time, for resampling."""

from collections.abc import Iterator

_MASK = (1 << 64) - 1


def indices(seed: int, below: int) -> Iterator[int]:
    """Without end, evenly from 0 up to `below` (SplitMix64: Steele, Lea and Flood 2014)."""
    state = seed & _MASK
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        yield (mixed ^ (mixed >> 31)) % below
