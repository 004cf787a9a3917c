"""Lasting: what of a checkpoint every later version of flapd understands.

Fields are only ever added, each with a default: an upgrade or a downgrade that cannot go on
from a checkpoint goes on with these, and no total falls.
"""

from collections.abc import Iterable

import msgspec

from flapd.core.fabric.book import Book
from flapd.core.fabric.tally import Tally
from flapd.core.fabric.view import DownHistogram, LinkTotals
from flapd.core.fabric.watch import PortRecord
from flapd.model.port import Port


class LastingPort(msgspec.Struct):
    port: Port
    ever_up: bool
    best_rate_mbps: int
    changes: int
    """Revisions of the port told so far."""
    totals: LinkTotals

    def record(self) -> PortRecord:
        """A port of which nothing else is known: it is counted from its next reading on."""
        book = Book(
            ever_up=self.ever_up,
            best_rate_mbps=self.best_rate_mbps,
            tally=Tally(totals=self.totals),
        )
        return PortRecord(self.port, book, is_told=True, changes=self.changes)


class Lasting(msgspec.Struct):
    down_histogram: DownHistogram
    ports: list[LastingPort]

    @classmethod
    def of(cls, down_histogram: DownHistogram, records: Iterable[PortRecord]) -> "Lasting":
        ports = [
            LastingPort(
                port.port,
                port.book.ever_up,
                port.book.best_rate_mbps,
                port.changes,
                port.book.tally.totals,
            )
            for port in records
        ]
        return cls(down_histogram, ports)
