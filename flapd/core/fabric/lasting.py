"""Lasting: what of a checkpoint every later version of flapd understands.

Fields are only ever added, each with a default: an upgrade or a downgrade that cannot go on
from a checkpoint goes on with these, and no total falls.
"""

import msgspec

from flapd.core.fabric.book import Book
from flapd.core.fabric.carrier import CarrierBook, Told
from flapd.core.fabric.catalogue import LINK_DOWNED, stop_of
from flapd.core.fabric.naming import Names
from flapd.core.fabric.record import PortRecord
from flapd.core.fabric.tally import Tally
from flapd.core.fabric.view import DownHistogram, LinkTotals
from flapd.core.fabric.witness import WitnessBook
from flapd.core.incident.view import IncidentTotals
from flapd.core.job.view import JobTotals
from flapd.model.port import Port

_STOP = stop_of(LINK_DOWNED)


class LastingPort(msgspec.Struct):
    port: Port
    ever_up: bool
    best_rate_mbps: int
    changes: int
    """Revisions of the port told so far."""
    totals: LinkTotals
    witness_value: int | None
    before_ns: int
    """Start of the last reading."""
    read_until_ns: int
    named_up_to: int
    carrier_told: Told | None = None
    """Counts that a message told before any sample did."""

    @classmethod
    def of(cls, record: PortRecord) -> "LastingPort":
        book = record.book
        return cls(
            record.port,
            book.ever_up,
            book.best_rate_mbps,
            record.changes,
            book.tally.totals,
            _STOP if record.reserve.in_use else book.witness.value,
            book.before_ns,
            book.read_until_ns,
            book.names.up_to,
            record.carrier.told,
        )

    def record(self) -> PortRecord:
        """Counted on from its last reading; what was open then is not known any more."""
        book = Book(
            witness=WitnessBook(value=self.witness_value, before_ns=self.before_ns),
            before_ns=self.before_ns,
            read_until_ns=self.read_until_ns,
            ever_up=self.ever_up,
            names=Names(self.named_up_to),
            best_rate_mbps=self.best_rate_mbps,
            tally=Tally(totals=self.totals),
        )
        carrier = CarrierBook(told=self.carrier_told)
        return PortRecord(self.port, book, carrier=carrier, is_told=True, changes=self.changes)


class Lasting(msgspec.Struct):
    boot: str
    wall_offset_ns: int | None
    down_histogram: DownHistogram
    ports: list[LastingPort]
    job_totals: JobTotals = msgspec.field(default_factory=JobTotals)
    incident_totals: IncidentTotals = msgspec.field(default_factory=IncidentTotals)
