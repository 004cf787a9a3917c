"""Traffic of one port: from a counter of bytes to spans that are busy, idle or not known."""

from typing import Literal

import msgspec

from flapd.model.times import SECOND_NS

_BUSY_SHARE = 0.001
"""Of the line rate: IPoIB, keep-alives and subnet management go on while a job stands still."""
_LEAST_RATE = 12.5e9
"""100 Gb/s: on a port whose rate is not known, what would be busy there is; a keep-alive is not."""
_SAMPLE_NS = SECOND_NS // 10
_LONGEST_SAMPLE_NS = 3 * _SAMPLE_NS
_LONGEST_IN_INTERVALS = 3


class Span(msgspec.Struct, frozen=True):
    """What a port did between two samples."""

    begin_ns: int
    end_ns: int
    kind: Literal["busy", "idle", "unknown"]
    moved_bytes: int


class PortTraffic(msgspec.Struct):
    """What is kept of a port."""

    rate: float | None
    """Line rate, bytes a second; None: not known, so at least the highest that was seen."""
    last_ns: int | None = None
    last_bytes: int = 0
    interval_ns: int = _SAMPLE_NS
    """The usual one between samples."""
    peak: float = 0.0
    busy_until_ns: int | None = None
    """None: no traffic of it was ever seen."""
    idle_since_ns: int | None = None
    """Without a break and without a gap in what is known; None: it is not idle, or not known."""

    def span_to(self, time_ns: int, total_bytes: int) -> Span | None:
        """What the next sample tells; None for the first, and for one out of order."""
        if self.last_ns is None or time_ns <= self.last_ns:
            return None
        return self._span(self.last_ns, time_ns, total_bytes - self.last_bytes)

    def take(self, time_ns: int, total_bytes: int, span: Span | None) -> None:
        """Goes on from this sample, which told `span`."""
        if self.last_ns is not None and time_ns <= self.last_ns:
            return
        self.last_ns, self.last_bytes = time_ns, total_bytes
        if span is not None:
            self._learn(span)
        if span is None or span.kind == "unknown":
            self.idle_since_ns = None
            return
        if span.kind == "busy":
            self.busy_until_ns, self.idle_since_ns = time_ns, None
        elif self.idle_since_ns is None:
            self.idle_since_ns = span.begin_ns

    def _learn(self, span: Span) -> None:
        length_ns = span.end_ns - span.begin_ns
        # One long pause in reading says little of how it is read.
        seen_ns = min(length_ns, _LONGEST_IN_INTERVALS * self.interval_ns)
        self.interval_ns += (seen_ns - self.interval_ns) // 8
        self.peak = max(self.peak, span.moved_bytes * SECOND_NS / length_ns)

    def _span(self, begin_ns: int, end_ns: int, moved: int) -> Span:
        if moved < 0:
            return Span(begin_ns, end_ns, "unknown", 0)
        length_ns = end_ns - begin_ns
        if length_ns <= self._longest_ns():
            busy = moved > self._threshold(length_ns)
            return Span(begin_ns, end_ns, "busy" if busy else "idle", moved)
        # So little in all that it cannot have been busy at any time.
        idle = moved <= self._threshold(_SAMPLE_NS)
        return Span(begin_ns, end_ns, "idle" if idle else "unknown", moved)

    def _longest_ns(self) -> int:
        return max(_LONGEST_SAMPLE_NS, _LONGEST_IN_INTERVALS * self.interval_ns)

    def _threshold(self, length_ns: int) -> float:
        rate = max(self.peak, _LEAST_RATE) if self.rate is None else self.rate
        return _BUSY_SHARE * rate * length_ns / SECOND_NS
