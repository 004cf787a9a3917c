"""LogStream: what one growing log tells, whatever the pieces in which it is read."""

from collections.abc import Iterator

import msgspec

from flapd.core.job.clock import Clock, timed
from flapd.core.job.faults import fault_of
from flapd.core.job.forms import FORMS
from flapd.core.job.header import Header, holds_header
from flapd.core.job.message import Message, messages, plain
from flapd.core.job.notes import notes_of
from flapd.core.job.pieces import Line, Pieces, as_chunk
from flapd.core.job.said import Said, Speaker
from flapd.core.job.sieve import Sieve
from flapd.model.fault import Place
from flapd.model.finding import Finding

LONGEST_LINE = 64 * 1024
"""Bytes; a longer one is taken for several."""
_LONGEST_JOIN = 64 * 1024
"""Bytes over which the lines of one message are believed to belong together."""
_MOST_SPEAKERS = 1024


class _Context(msgspec.Struct):
    """The last message with a header; lines without one that follow it continue it."""

    speaker: Speaker
    stamp: str | None
    end: int
    alone_until: int
    """No other header stands between its end and here."""


_NOTHING = _Context(Speaker(), None, 0, 0)


class LogStream:
    """Takes a file's bytes in order, gives what they tell; holds no more than one line."""

    def __init__(
        self, file: str, *, scope: str = "", offset: int = 0, sieve: Sieve | None = None
    ) -> None:
        """`scope` tells apart files of the same name, "" where all nodes see the same file.

        `sieve` is shared by logs that are read together: they look alike.
        """
        self.file = file
        self.lines = 0
        self.unknown_warnings = 0
        """Of NCCL, in forms that are not known."""
        self._scope = scope
        self._offset = offset
        self._rest = b""
        self._sieve = Sieve(FORMS) if sieve is None else sieve
        self._contexts: dict[str, _Context] = {}
        self._pieces = Pieces()

    @property
    def offset(self) -> int:
        """Where to go on reading after a restart: all before it is done with."""
        held = self._pieces.begin
        return self._offset if held is None else held

    def feed(self, data: bytes, clock: Clock) -> list[Finding]:
        """What the lines that are complete by now tell, in order."""
        self.lines += data.count(b"\n")
        # Progress bars end lines with a carriage return only.
        self._rest += data.replace(b"\r", b"\n")
        found = []
        end = self._rest.rfind(b"\n") + 1
        if end:
            found += self._take(end, clock)
        while len(self._rest) >= LONGEST_LINE:
            found += self._take(LONGEST_LINE, clock)
        return found

    def finish(self, clock: Clock) -> list[Finding]:
        """What the last line tells, where its end never came."""
        found = self._take(len(self._rest), clock)
        return [*found, *self._read_whole(self._pieces.finish(), clock)]

    def _take(self, length: int, clock: Clock) -> list[Finding]:
        chunk, self._rest = self._rest[:length], self._rest[length:]
        if self._pieces.concern(chunk):
            found = self._read_whole(self._pieces.take(chunk, self._offset), clock)
        else:
            found = self._read_chunk(chunk, clock)
        self._offset += length
        return found

    def _read_chunk(self, chunk: bytes, clock: Clock) -> list[Finding]:
        found: list[Finding] = []
        for start, line in self._sieve.candidates(chunk):
            for piece in range(0, len(line), LONGEST_LINE):
                self._end_context(chunk, start + piece)
                place = Place(self.file, self._offset + start + piece)
                found += self._read(line[piece : piece + LONGEST_LINE], place, clock)
        self._end_context(chunk, len(chunk))
        return found

    def _read_whole(self, lines: list[Line], clock: Clock) -> list[Finding]:
        """Lines that were put together: what lies between them is not what lies in the file."""
        chunk, starts = as_chunk(lines)
        found, seen = list[Finding](), 0
        for start, line in self._sieve.candidates(chunk):
            self._end_context_if(holds_header(chunk, seen, start))
            before = self._contexts.get("")
            found += self._read(line[:LONGEST_LINE], Place(self.file, starts[start]), clock)
            seen = start if self._contexts.get("") is before else start + len(line)
        self._end_context_if(holds_header(chunk, seen, len(chunk)))
        return found

    def _end_context_if(self, others_spoke: bool) -> None:
        context = self._contexts.get("")
        if others_spoke:
            self._contexts.pop("", None)
        elif context is not None:
            context.alone_until = max(context.alone_until, self._offset)

    def _read(self, line: bytes, place: Place, clock: Clock) -> Iterator[Finding]:
        for message in messages(plain(line)):
            self.unknown_warnings += message.form.kind == "unknown"
            speaker, stamp = self._who(message, place)
            when = timed(stamp, clock, message.launch.taken_ns)
            said = Said(message, speaker, when, place, self._scope)
            fault = fault_of(said)
            if fault is not None:
                yield fault
            yield from notes_of(said)
            if message.header is not None:
                self._remember(message, speaker, stamp, place.offset + len(line))

    def _who(self, message: Message, place: Place) -> tuple[Speaker, str | None]:
        """By its own header, else by the one it continues."""
        launch, header = message.launch, message.header or Header()
        before = self._continued(message, place)
        speaker = Speaker(
            rank=_first(header.rank, launch.rank, before.speaker.rank),
            host=header.host or launch.host or before.speaker.host,
            pid=_first(header.pid, launch.pid, before.speaker.pid),
        )
        return speaker, message.stamp or before.stamp

    def _continued(self, message: Message, place: Place) -> _Context:
        context = self._contexts.get(message.launch.label) if message.header is None else None
        if context is None or place.offset - context.end > _LONGEST_JOIN:
            return _NOTHING
        ranks = {message.launch.rank, context.speaker.rank} - {None}
        return context if len(ranks) < 2 else _NOTHING

    def _remember(self, message: Message, speaker: Speaker, stamp: str | None, end: int) -> None:
        label = message.launch.label
        self._contexts.pop(label, None)
        self._contexts[label] = _Context(speaker, stamp, end, end)
        if len(self._contexts) > _MOST_SPEAKERS:
            self._contexts.pop(next(iter(self._contexts)))

    def _end_context(self, chunk: bytes, until: int) -> None:
        """Where nothing labels the lines, any header between them ends what was before it."""
        context = self._contexts.get("")
        if context is None:
            return
        start = context.alone_until - self._offset
        if start < until and holds_header(chunk, start, until):
            del self._contexts[""]
        else:
            context.alone_until = max(context.alone_until, self._offset + until)


def _first(*numbers: int | None) -> int | None:
    return next((number for number in numbers if number is not None), None)
