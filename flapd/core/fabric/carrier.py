"""Carrier: what the two counts of a netdev tell of its link, whichever way they come.

Losing the carrier adds a down, gaining it an up (net/sched/sch_generic.c: netif_carrier_off,
netif_carrier_on), so their difference tells which was last; and since they only rise, they
order samples and messages of one netdev that overtake each other.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from flapd.core.fabric.catalogue import CARRIER, CARRIER_DOWNS, CARRIER_UPS
from flapd.model.observation import READ_CARRIER, READ_WITNESS, LinkHint, Sample

_WRAP = 1 << 32


class Counts(msgspec.Struct, frozen=True, array_like=True):
    """As they stood together, or within a moment."""

    downs: int
    ups: int

    def reach(self, others: "Counts") -> bool:
        """Neither is behind; each wraps at 2^32."""
        return _is_ahead(self.downs, others.downs) and _is_ahead(self.ups, others.ups)


def _is_ahead(one: int, other: int) -> bool:
    return (one - other) % _WRAP < _WRAP // 2


def counts_in(values: Mapping[str, int]) -> Counts | None:
    downs, ups = values.get(CARRIER_DOWNS), values.get(CARRIER_UPS)
    return None if downs is None or ups is None else Counts(downs, ups)


class Told(msgspec.Struct, frozen=True):
    """Counts that a message told before any sample did."""

    counts: Counts
    received_ns: int


class CarrierBook(msgspec.Struct):
    """What is kept of the netdev behind a port."""

    on_difference: int | None = None
    """Ups less downs while the carrier is on: then the counts alone tell the carrier."""
    index: int | None = None
    """Number of the netdev whose counts were seen to be those that are read."""
    read_since_ns: int | None = None
    """End of the first sample of these counts; None: there was none yet."""
    told: Told | None = None
    """The newest counts; None once a sample that began later was taken."""


class Placed(NamedTuple):
    """Counts of a message; whether they are news, or were known when it came."""

    counts: Counts
    is_news: bool


class Carrier:
    def __init__(self, book: CarrierBook) -> None:
        self.book = book

    @property
    def is_told(self) -> bool:
        """The counts tell up and down exactly, without the netdev's lagging state."""
        return self.book.on_difference is not None

    def learn(self, sample: Sample, values: Mapping[str, int]) -> None:
        """Which difference it is that means on."""
        book, counts, carrier = self.book, counts_in(values), values.get(CARRIER)
        if book.read_since_ns is None:
            book.read_since_ns = sample.after_ns
        if sample.reads & READ_CARRIER and counts is not None and carrier is not None:
            book.on_difference = counts.ups - counts.downs + (0 if carrier else 1)

    def is_on(self, counts: Counts | None) -> bool | None:
        """None where that is not known yet."""
        if counts is None or self.book.on_difference is None:
            return None
        return _is_ahead(counts.ups - counts.downs, self.book.on_difference)

    def is_behind(self, sample: Sample) -> bool:
        """It may have been read before what a message has told since."""
        return self.book.told is not None and sample.before_ns < self.book.told.received_ns

    def overtaken(self, sample: Sample, values: Mapping[str, int]) -> Counts | None:
        """Its counts, where a message has told later ones; `values` hold what it read."""
        counts, told = counts_in(values), self.book.told
        if told is None or counts is None or not sample.reads & READ_WITNESS:
            return None
        if not self.is_behind(sample):
            self.book.told = None
            return None
        return None if counts.reach(told.counts) else counts

    def place(self, hint: LinkHint, values: Mapping[str, int]) -> Placed | None:
        """Among what is known of the same netdev; None where it cannot be placed.

        A netdev that was made anew has another number, and its counts begin anew. Which it is
        that is read tells an answer that was asked for since, and has the very counts.
        """
        book, known, counts = self.book, self._newest(values), _counts_of(hint)
        if not hint.present and hint.index == book.index:
            book.index = None
        if not self.is_told or counts is None or known is None or not hint.present:
            return None
        if counts == known and _is_asked_since(book.read_since_ns, hint):
            book.index = hint.index
        is_ahead, is_reached = counts.reach(known), known.reach(counts)
        if hint.index != book.index or not (is_ahead or is_reached):
            return None
        is_news = not is_reached
        if is_news:
            book.told = Told(counts, hint.monotonic_ns)
        return Placed(counts, is_news)

    def forget_netdev(self) -> None:
        """Another may be read from now on."""
        self.book.index = self.book.read_since_ns = None

    def forget(self) -> None:
        """Nothing that was read or told of it goes on."""
        self.forget_netdev()
        self.book.on_difference = self.book.told = None

    def _newest(self, values: Mapping[str, int]) -> Counts | None:
        """A sample that began before a message was received can have read later counts."""
        told, read = self.book.told, counts_in(values)
        if told is None or (read is not None and read.reach(told.counts)):
            return read
        return told.counts


def _is_asked_since(read_since_ns: int | None, hint: LinkHint) -> bool:
    asked_ns = hint.asked_ns
    return asked_ns is not None and read_since_ns is not None and asked_ns >= read_since_ns


def _counts_of(hint: LinkHint) -> Counts | None:
    if hint.carrier_downs is None or hint.carrier_ups is None:
        return None
    return Counts(hint.carrier_downs, hint.carrier_ups)
