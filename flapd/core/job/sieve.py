"""Sieve: which lines of a log may hold a message that is known, at the speed of memory.

What varies in a log is numbers and addresses. Without digits and the letters of hexadecimal
numbers, a chunk has few different lines, and nearly all were seen before; so the needles of all
forms are looked for in new ones only. A line that holds a needle still holds it when both have
lost the same characters: nothing is dropped that a form could match.
"""

from collections.abc import Iterable

from flapd.core.job.form import Form

_VARYING = b"0123456789abcdef"
_MOST_SHAPES = 4096
_LONGEST_SHAPE = 4096
"""Together they bound what is remembered: 16 MiB."""


class Sieve:
    """Remembers what lines without a message look like."""

    def __init__(self, forms: Iterable[Form]) -> None:
        self._needles = sorted({form.needle.encode() for form in forms})
        self._shapes = sorted({needle.translate(None, _VARYING) for needle in self._needles})
        self._harmless: set[bytes] = set()

    def candidates(self, chunk: bytes) -> list[tuple[int, bytes]]:
        """The lines, with where they begin in the chunk, that hold a needle."""
        shapes = chunk.translate(None, _VARYING).split(b"\n")
        suspects = self._suspects(set(shapes) - self._harmless)
        if not suspects:
            return []
        found, start = [], 0
        for line, shape in zip(chunk.split(b"\n"), shapes, strict=True):
            if shape in suspects and any(needle in line for needle in self._needles):
                found.append((start, line))
            start += len(line) + 1
        return found

    def _suspects(self, new: set[bytes]) -> set[bytes]:
        suspects = {shape for shape in new if any(one in shape for one in self._shapes)}
        harmless = {one for one in new - suspects if len(one) <= _LONGEST_SHAPE}
        if len(self._harmless) + len(harmless) > _MOST_SHAPES:
            self._harmless.clear()
        if len(harmless) <= _MOST_SHAPES:
            self._harmless |= harmless
        return suspects
