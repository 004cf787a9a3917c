"""Ports as jobs see them: which there are, what each has sent, how fast it is."""

from collections.abc import Iterable, Iterator

import msgspec

from flapd.core.fabric.catalogue import RATE_MBPS, counter_of, tier_of, transmitted_among
from flapd.core.job.counters import CounterBook
from flapd.model.observation import READ_FIRST, READ_SLOW, READ_WITNESS, Sample
from flapd.model.port import Port

_BYTES_PER_MEGABIT = 125_000


class PortBook(msgspec.Struct):
    """What is kept of a port."""

    port: Port
    before_ns: int = 0
    """Start of the last sample."""
    rate_mbps: int | None = None
    sent_by: str | None = None
    """The counter of what it sent; None: it has none, or it was not seen yet."""
    sent: int | None = None
    """Its last value; None: it cannot be read."""
    scale: int = 1
    """Bytes in one of what it counts."""
    sent_with: int = 0
    """Of the groups of a sample the one that is never read without this counter."""
    counters: CounterBook = msgspec.field(default_factory=CounterBook)

    @property
    def line_rate(self) -> float | None:
        """Bytes a second."""
        return None if self.rate_mbps is None else float(self.rate_mbps * _BYTES_PER_MEGABIT)

    def take(self, sample: Sample) -> bool:
        """False: it began before the last one, and what it says is older than what is known."""
        if sample.before_ns < self.before_ns:
            return False
        self.before_ns = sample.before_ns
        if sample.values:
            self._know(sample)
        if sample.errors and self.sent_by in sample.errors:
            self.sent = None
        return True

    def sent_bytes(self, sample: Sample) -> int | None:
        """In all, if this sample tells."""
        if self.sent is None:
            return None
        if not sample.reads & self.sent_with and self.sent_by not in sample.values:
            return None
        return self.sent * self.scale

    def _know(self, sample: Sample) -> None:
        values = sample.values
        if self.sent_by is None or sample.reads & READ_FIRST:
            self._count_by(transmitted_among(self.port.driver, values) or self.sent_by)
        if self.sent_by in values:
            self.sent = values[self.sent_by]
        self.rate_mbps = values.get(RATE_MBPS, self.rate_mbps)

    def _count_by(self, name: str | None) -> None:
        if name is None or name == self.sent_by:
            return
        counter = counter_of(self.port.driver, name)
        is_fast = tier_of(name) == "fast" and self.port.witness is not None
        self.sent_by, self.sent = name, None
        self.scale = 1 if counter is None else counter.scale
        self.sent_with = READ_WITNESS if is_fast else READ_SLOW


class Ports:
    """All that discovery has found so far."""

    def __init__(self, record: dict[str, PortBook]) -> None:
        self.record = record
        """By key."""

    def seen(self, port: Port) -> None:
        book = self.record.get(port.key)
        if book is None:
            self.record[port.key] = PortBook(port)
        else:
            book.port = port

    def port(self, key: str) -> Port | None:
        book = self.record.get(key)
        return None if book is None else book.port

    def named(self, device: str | None, number: int | None) -> list[str]:
        """Keys of the port of this name, or where it has no number of all of the device."""
        return [
            key
            for key, book in self.record.items()
            if book.port.device == device and number in (None, book.port.number)
            if book.port.member is None
        ]

    def carrying(self, key: str) -> str:
        """The port that sends what this one would: that of the bond whose member it is."""
        book = self.record.get(key)
        if book is None or book.port.member is None:
            return key
        return next(iter(self.named(book.port.device, book.port.number)), key)

    def keys_of(self, hcas: Iterable[str]) -> Iterator[str]:
        """Of NCCL's names, such as "mlx5_0:1/RoCE"; those that are not here are left out."""
        for hca in hcas:
            device, _, number = hca.partition("/")[0].partition(":")
            if number.isdigit():
                yield from self.named(device, int(number))

    def rates(self) -> dict[str, float | None]:
        """Line rates in bytes a second, by key, of all that can carry a job's traffic."""
        return {
            key: book.line_rate for key, book in self.record.items() if book.port.member is None
        }
