"""PortWatch: one port's samples merged into what stands now, and read for its link."""

from collections.abc import Mapping

import msgspec

from flapd.core.fabric.catalogue import (
    ACTIVE_STATES,
    CARRIER,
    CARRIER_DOWNS,
    CARRIER_UPS,
    PHYSICAL_LINK_UP,
    PHYSICAL_STATE,
    STATE,
    stop_of,
)
from flapd.core.fabric.ledger import Book, Ledger, LinkReading
from flapd.core.fabric.view import PortView
from flapd.model.event import Layer, Outage
from flapd.model.observation import READ_CARRIER, READ_STATE, READ_WITNESS, Sample
from flapd.model.port import Port


class PortRecord(msgspec.Struct):
    """What is kept of one port: the checkpoint holds just this."""

    port: Port
    book: Book = msgspec.field(default_factory=Book)
    values: dict[str, int] = {}
    carrier_on_difference: int | None = None
    """Carrier ups less downs while the carrier is on: then the counts alone tell the carrier."""


class PortWatch:
    """Follows one port."""

    def __init__(self, node: str, record: PortRecord, *, boot: str, drop_after_ns: int) -> None:
        self.record = record
        self.ledger = Ledger(node, record.port, record.book, boot=boot, drop_after_ns=drop_after_ns)
        self.present = False
        self.errors: dict[str, str] = {}
        self.readable = False
        self.last_read_ns: int | None = None

    def seen(self, port: Port) -> None:
        """Discovery found the port, perhaps under another name or with another netdev."""
        if port.witness != self.record.port.witness or port.netdev != self.record.port.netdev:
            self.record.book.witness = None
            self.record.carrier_on_difference = None
        self.record.port = self.ledger.port = port
        self.present = True

    def gone(self) -> list[Outage]:
        self.present = False
        self.readable = False
        return self.ledger.lose_track()

    def observe(self, sample: Sample) -> list[Outage]:
        """Takes one sample: what it makes known of outages."""
        reads = sample.reads
        if reads & (READ_WITNESS | READ_STATE):
            self.readable = True
            self.last_read_ns = sample.after_ns
        if not sample.values and not sample.errors and not sample.first and self.ledger.quiet:
            self.ledger.quiet_reading(
                sample.before_ns,
                witness=bool(reads & READ_WITNESS),
                state=bool(reads & (READ_WITNESS if self._told_by_carrier else READ_STATE)),
            )
            return []
        self._merge(sample)
        return self.ledger.observe(self._link_reading(sample))

    def view(self) -> PortView:
        record, ledger = self.record, self.ledger
        book = record.book
        return PortView(
            port=record.port,
            present=self.present,
            up=book.up if self.readable else None,
            ever_up=book.ever_up,
            values=record.values,
            errors=self.errors,
            witness_value=book.witness,
            witness_status=ledger.witness_status,
            saturated=tuple(
                name for name, value in record.values.items() if value == stop_of(name)
            ),
            readable=self.readable,
            last_read_ns=self.last_read_ns,
            down_since=book.outage.down if book.outage is not None else None,
            last_down=book.outage.down if book.outage is not None else book.last_down,
            last_down_ns=book.last_down_ns,
            totals=msgspec.structs.replace(book.totals, downs=dict(book.totals.downs)),
        )

    def _merge(self, sample: Sample) -> None:
        """New dictionaries, since views that were published hold the old ones."""
        if sample.first:
            self.record.values = dict(sample.values)
            self.errors = dict(sample.errors)
        elif sample.values or sample.errors:
            self.record.values = {
                name: value
                for name, value in {**self.record.values, **sample.values}.items()
                if name not in sample.errors
            }
            self.errors = {
                name: error
                for name, error in {**self.errors, **sample.errors}.items()
                if name not in sample.values
            }
        if self._essential_is_unreadable(sample.errors):
            self.readable = False

    def _essential_is_unreadable(self, errors: Mapping[str, str]) -> bool:
        return self.record.port.witness in errors or STATE in errors

    @property
    def _told_by_carrier(self) -> bool:
        """The netdev's counts tell up and down exactly, without its lagging state."""
        return self.record.carrier_on_difference is not None

    def _link_reading(self, sample: Sample) -> LinkReading:
        values, port = self.record.values, self.record.port
        has_witness = bool(sample.reads & READ_WITNESS) and port.witness is not None
        witness = values.get(port.witness) if has_witness and port.witness else None
        up: bool | None = None
        layer: Layer | None = None
        if port.witness == CARRIER_DOWNS and witness is not None:
            up, layer = self._carrier(sample, witness), "physical"
        if up is None and not self._told_by_carrier and sample.reads & READ_STATE:
            up, layer = self._state()
        return LinkReading(sample.before_ns, sample.after_ns, witness, up, layer, sample.first)

    def _carrier(self, sample: Sample, downs: int) -> bool | None:
        """Carrier off adds a down and carrier on an up, so their difference tells which is last."""
        values, record = self.record.values, self.record
        ups = values.get(CARRIER_UPS)
        if ups is None:
            return None
        if sample.reads & READ_CARRIER:
            record.carrier_on_difference = ups - downs + (0 if values[CARRIER] else 1)
        if record.carrier_on_difference is None:
            return None
        return ups - downs >= record.carrier_on_difference

    def _state(self) -> tuple[bool | None, Layer | None]:
        values = self.record.values
        state, physical = values.get(STATE), values.get(PHYSICAL_STATE)
        if state is None:
            return None, None
        if physical is None:
            return state in ACTIVE_STATES, None
        return state in ACTIVE_STATES, "logical" if physical == PHYSICAL_LINK_UP else "physical"
