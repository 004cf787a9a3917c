"""Pieces: lines that a container's runtime cut, put together again.

CRI's log format: "TIME STREAM P text" is a piece whose line goes on in the next of its stream, and
"TIME STREAM F text" is the last or the only one. Runtimes cut at 16 KiB, wherever that is.
"""

import re
from collections.abc import Iterator
from itertools import accumulate, pairwise

_RECORD = re.compile(
    rb"\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d) (std(?:out|err)) ([FP]) ", re.ASCII
)
_MARKS = (b" stdout P ", b" stderr P ")
LONGEST_JOIN = 64 * 1024
"""Bytes of one line that are kept while its end is waited for."""
LONGEST_WAIT = 1024 * 1024
"""Bytes of other lines after which an end that did not come is not waited for."""

Line = tuple[int, bytes]
"""Where it begins in the file, and what it says."""


class Pieces:
    """Takes the lines of a log in order; holds one unfinished line of each stream."""

    def __init__(self) -> None:
        self._held: dict[bytes, Line] = {}
        self._open: bytes | None = None
        """The stream of the last record, where that is a piece: carriage returns cut it further."""

    @property
    def begin(self) -> int | None:
        """Where what is held begins."""
        return min((start for start, _ in self._held.values()), default=None)

    def concern(self, chunk: bytes) -> bool:
        """Else its lines are whole, and as they are."""
        return bool(self._held) or any(mark in chunk for mark in _MARKS)

    def take(self, chunk: bytes, offset: int) -> list[Line]:
        """What is whole by now; `chunk` stands at `offset` of the file and ends with a line."""
        lines = chunk.removesuffix(b"\n").split(b"\n")
        starts = accumulate((len(line) + 1 for line in lines), initial=offset)
        found = [whole for line in zip(starts, lines, strict=False) for whole in self._take(line)]
        if self.begin is not None and offset + len(chunk) - self.begin > LONGEST_WAIT:
            found += self.finish()
        return found

    def finish(self) -> list[Line]:
        """What is held, as far as it goes."""
        held, self._held, self._open = sorted(self._held.values()), {}, None
        return held

    def _take(self, line: Line) -> Iterator[Line]:
        start, text = line
        record = _RECORD.match(text)
        if record is None:
            yield from self._take_rest(line)
            return
        stream, tag = record[1], record[2]
        self._open = stream if tag == b"P" else None
        before = self._held.pop(stream, None)
        if before is not None:
            start, text = before[0], before[1] + text[record.end() :]
        if self._open is None or len(text) > LONGEST_JOIN:
            yield start, text
        else:
            self._held[stream] = start, text

    def _take_rest(self, line: Line) -> Iterator[Line]:
        """Of a record that carriage returns cut into lines only the last goes on."""
        if self._open is None:
            yield line
            return
        before = self._held.pop(self._open, None)
        if before is not None:
            yield before
        self._held[self._open] = line


def as_chunk(lines: list[Line]) -> tuple[bytes, dict[int, int]]:
    """All of them as one, and where in the file that begins which stands at a place in it."""
    text = b"".join(line + b"\n" for _, line in lines)
    places = accumulate((len(line) + 1 for _, line in lines), initial=0)
    return text, {
        place: start for (place, _), (start, _) in zip(pairwise(places), lines, strict=True)
    }
