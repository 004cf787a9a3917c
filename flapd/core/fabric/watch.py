"""PortWatch: one port's samples merged into what stands now, and read for its link."""

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
from flapd.core.fabric.view import PortView, WitnessStatus
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
        self.last_read_ns: int | None = None
        self._fresh = False
        """It was read, and not too long ago."""

    def seen(self, port: Port, now_ns: int) -> list[Outage]:
        """Discovery found the port, perhaps under another name or with another netdev."""
        before = self.record.port
        self.record.port = self.ledger.port = port
        self.present = True
        if port.counted_by == before.counted_by:
            return []
        self.record.carrier_on_difference = None
        return self.ledger.change_witness(port.witness, now_ns)

    def gone(self, now_ns: int) -> list[Outage]:
        self.present = self._fresh = False
        return self.ledger.lose_track(now_ns)

    def not_read(self) -> None:
        """Nobody can say now how it is."""
        self._fresh = False

    def observe(self, sample: Sample) -> list[Outage]:
        """Takes one sample: what it makes known of outages."""
        book = self.record.book
        if sample.before_ns < book.before_ns:
            return []  # of a reader that was replaced: it may hold older values
        book.read_until_ns = sample.after_ns
        reads = sample.reads
        if reads & (READ_WITNESS | READ_STATE):
            self._fresh = True
            self.last_read_ns = sample.after_ns
        if not sample.values and not sample.errors and self._is_quiet(sample):
            tells_state = reads & (READ_WITNESS if self._told_by_carrier else READ_STATE)
            self.ledger.stamp(
                sample.before_ns,
                witness=bool(reads & READ_WITNESS),
                up=True if tells_state else None,
            )
            return []
        self._merge(sample)
        return self.ledger.observe(self._link_reading(sample))

    def view(self) -> PortView:
        record, book = self.record, self.record.book
        outage = self.ledger.open_outage
        witness_error = record.port.witness in self.errors
        values, errors = record.values, self.errors
        if not self._fresh:  # what was read once is not what stands now
            stale = dict.fromkeys(values, "not read") if self.last_read_ns is not None else {}
            values, errors = {}, {**stale, **errors}
        return PortView(
            port=record.port,
            present=self.present,
            up=book.up if self._fresh and not self._teller_is_unreadable else None,
            ever_up=book.ever_up,
            values=values,
            errors=errors,
            witness_value=book.witness.value if self._fresh and not witness_error else None,
            witness_status=self.witness_status,
            witness_resets=book.witness.resets,
            saturated=tuple(name for name, value in values.items() if value == stop_of(name)),
            readable=self._fresh and not self._teller_is_unreadable and not witness_error,
            last_read_ns=self.last_read_ns,
            down_since=outage.down if outage is not None else None,
            last_down=outage.down if outage is not None else book.last_down,
            last_down_ns=book.last_down_ns,
            totals=msgspec.structs.replace(book.totals, downs=dict(book.totals.downs)),
        )

    @property
    def witness_status(self) -> WitnessStatus:
        return (
            "unreadable" if self.record.port.witness in self.errors else self.ledger.witness.status
        )

    @property
    def _told_by_carrier(self) -> bool:
        """The netdev's counts tell up and down exactly, without its lagging state."""
        return self.record.carrier_on_difference is not None

    @property
    def _teller_is_unreadable(self) -> bool:
        return (CARRIER_DOWNS if self._told_by_carrier else STATE) in self.errors

    def _is_quiet(self, sample: Sample) -> bool:
        record = self.record
        witness = record.port.witness
        return (
            self.ledger.quiet
            and not sample.first
            and (witness is None or record.values.get(witness) == record.book.witness.value)
        )

    def _merge(self, sample: Sample) -> None:
        """New dictionaries, since views that were published hold the old ones."""
        if sample.first:
            self.record.values = dict(sample.values)
            self.errors = dict(sample.errors)
            return
        values = {**self.record.values, **sample.values}
        errors = {**self.errors, **sample.errors}
        for name in sample.errors:
            values.pop(name, None)
        for name in sample.values:
            errors.pop(name, None)
        self.record.values, self.errors = values, errors

    def _link_reading(self, sample: Sample) -> LinkReading:
        values, port = self.record.values, self.record.port
        witness = None
        if sample.reads & READ_WITNESS and port.witness is not None:
            witness = values.get(port.witness)
        up: bool | None = None
        layer: Layer | None = "physical"
        if port.witness == CARRIER_DOWNS and witness is not None:
            up = self._carrier(sample, witness)
        if up is None and not self._told_by_carrier and sample.reads & READ_STATE:
            up, layer = self._state()
        return LinkReading(sample.before_ns, sample.after_ns, witness, up, layer, sample.first)

    def _carrier(self, sample: Sample, downs: int) -> bool | None:
        """Carrier off adds a down and carrier on an up, so their difference tells which is last."""
        values, record = self.record.values, self.record
        ups, carrier = values.get(CARRIER_UPS), values.get(CARRIER)
        if ups is None:
            return None
        if sample.reads & READ_CARRIER and carrier is not None:
            record.carrier_on_difference = ups - downs + (0 if carrier else 1)
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
