"""PortWatch: one port's samples merged into what stands now, and read for its link."""

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from flapd.core.fabric.book import Book
from flapd.core.fabric.catalogue import (
    ACTIVE_STATES,
    CARRIER,
    CARRIER_DOWNS,
    CARRIER_UPS,
    FLAGS,
    PHYSICAL_DISABLED,
    PHYSICAL_LINK_UP,
    PHYSICAL_STATE,
    RATE_MBPS,
    STATE,
    is_vouched_for,
    state_is_constant,
    stop_of,
)
from flapd.core.fabric.damping import penalty_at
from flapd.core.fabric.ledger import Ledger
from flapd.core.fabric.quality import SYMBOL_ERRORS, Level, Quality, bit_error_ratio, look
from flapd.core.fabric.reading import LinkReading
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.view import NOT_READ, PortView, Repair, WitnessStatus
from flapd.model.event import Change, Event, Layer, Outage, PortChange
from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_RATE,
    READ_STATE,
    READ_WITNESS,
    Sample,
)
from flapd.model.port import Port

_IFF_UP = 1
_WRAP = 1 << 32
_OF_THE_LINK = frozenset({STATE, PHYSICAL_STATE, CARRIER, CARRIER_DOWNS, CARRIER_UPS, FLAGS})
_GONE = "ENODEV"
"""What a descriptor gives whose device was unregistered, also if it is back by now."""


class PortRecord(msgspec.Struct):
    """What is kept of one port: the checkpoint holds just this."""

    port: Port
    book: Book = msgspec.field(default_factory=Book)
    values: dict[str, int] = {}
    carrier_on_difference: int | None = None
    """Carrier ups less downs while the carrier is on: then the counts alone tell the carrier."""
    is_told: bool = False
    """That it was found."""
    changes: int = 0
    """Revisions of the port told so far."""
    told_witness: WitnessStatus = "unproven"
    told_flapping: bool = False
    unregistered: bool = False
    """Its device said that it is gone, and nothing of it was read since."""
    quality: Quality = msgspec.field(default_factory=Quality)
    told_level: Level = "good"
    repaired: Repair | None = None
    gone_unix_ns: int | None = None
    """When discovery last found that it is not there; None while it is."""


class PortWatch:
    """Follows one port."""

    def __init__(self, node: str, record: PortRecord, *, boot: str, settings: FlapSettings) -> None:
        self.record = record
        self.ledger = Ledger(node, record.port, record.book, boot=boot, settings=settings)
        self.present = record.gone_unix_ns is None
        """As last known, until discovery tells."""
        self.errors: dict[str, str] = {}
        self.last_read_ns: int | None = None
        self._node = node
        self._settings = settings
        self._fresh = False
        """It was read, and not too long ago."""

    def seen(self, port: Port, now_ns: int) -> list[Event]:
        """Discovery found the port, perhaps under another name or with another netdev."""
        record, before = self.record, self.record.port
        record.port = port
        self.ledger.know_port(port)
        events: list[Event] = []
        if not record.is_told:
            record.is_told = True
            events.append(self.changed("found", port.name, now_ns))
        elif record.gone_unix_ns is not None:
            events.append(self.changed("back", port.name, now_ns))
        elif port != before:
            events.append(self.changed("described", _difference(before, port), now_ns))
        self.present, record.gone_unix_ns = True, None
        if port.counted_by != before.counted_by:
            record.carrier_on_difference = None
            events += self.ledger.change_witness(port.witness, now_ns)
        return events

    def gone(self, now_ns: int) -> list[Event]:
        """Discovery does not find it any more; told once."""
        self.present = False
        if self.record.gone_unix_ns is not None:
            return []
        self.record.gone_unix_ns = now_ns + self.ledger.wall_offset_ns
        return [*self._lose_track(now_ns), self.changed("gone", self.record.port.name, now_ns)]

    def forget(self, now_ns: int) -> list[Event]:
        """It is not expected back, and nothing more will be told of it."""
        told = self.changed("forgotten", self.record.port.name, now_ns)
        return [*self.ledger.give_up(now_ns), told]

    def begin_boot(self, boot: str, shift_ns: int) -> list[Event]:
        """The machine started anew, and the counts of netdevs with it."""
        self.record.carrier_on_difference = None
        return [*self.ledger.begin_boot(boot, shift_ns)]

    def not_read(self) -> None:
        """Nobody can say now how it is."""
        self._fresh = False

    def repaired(self, note: str, now_ns: int) -> list[Event]:
        """Somebody replaced cable or module: what it did before counts against it no more."""
        damping = self.record.book.tally.damping
        damping.penalty, damping.flapping = 0.0, False
        self.record.repaired = Repair(now_ns + self.ledger.wall_offset_ns, note)
        return [self.changed("repaired", note, now_ns), *self._changes(now_ns)]

    def pass_time(self, now_ns: int) -> list[Event]:
        values = self.record.values
        errors = values.get(SYMBOL_ERRORS) if self.record.book.up and self._fresh else None
        look(self.record.quality, now_ns, errors, values.get(RATE_MBPS))
        return [*self.ledger.pass_time(now_ns), *self._changes(now_ns)]

    def observe(self, sample: Sample) -> list[Event]:
        """Takes one sample: what it makes known of outages, and of the port itself."""
        book, reads = self.record.book, sample.reads
        if sample.before_ns < book.before_ns:
            return [*self.ledger.observe(self._late_reading(sample))]
        book.read_until_ns = sample.after_ns
        if self._is_unregistered(sample):
            self._merge(sample)
            return [*self._lose_track(sample.after_ns)]
        if reads & (READ_WITNESS | READ_STATE):
            self._fresh = True
            self.last_read_ns = sample.after_ns
        is_quiet = self._is_quiet(sample)
        if sample.values or sample.errors:
            self._merge(sample)
        if is_quiet:
            tells_state = reads & (READ_WITNESS if self._told_by_carrier else READ_STATE)
            self.ledger.stamp(
                sample.before_ns,
                witness=bool(reads & READ_WITNESS),
                up=True if tells_state else None,
            )
            return []
        outages = self.ledger.observe(self._link_reading(sample))
        return [*outages, *self._changes(sample.after_ns)]

    def changed(self, change: Change, note: str, now_ns: int) -> PortChange:
        """The next revision of the port."""
        record = self.record
        record.changes += 1
        name = blake2b(f"{self._node}|{record.port.key}".encode(), digest_size=8).hexdigest()
        return PortChange(
            id=f"port-{name}",
            revision=record.changes,
            node=self._node,
            key=record.port.key,
            port=record.port.name,
            guid=record.port.guid,
            change=change,
            note=note,
            recorded_ns=now_ns,
            wall_offset_ns=self.ledger.wall_offset_ns,
        )

    def view(self, now_ns: int) -> PortView:
        record, book = self.record, self.record.book
        outage = self.ledger.open_outage
        witness_error = record.port.witness in self.errors
        values, errors = record.values, self.errors
        if not self._fresh:  # what was read once is not what stands now
            stale = dict.fromkeys(values, NOT_READ) if self.last_read_ns is not None else {}
            values, errors = {}, {**stale, **errors}
        up = book.up if self._fresh and not self._teller_is_unreadable else None
        rate_mbps, expected_mbps = values.get(RATE_MBPS), self.ledger.expected_rate_mbps
        is_rated = up and rate_mbps is not None and expected_mbps is not None
        return PortView(
            port=record.port,
            present=self.present,
            up=up,
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
            last_down=book.last_down,
            last_down_ns=book.last_down_ns,
            totals=msgspec.structs.replace(book.tally.totals, downs=dict(book.tally.totals.downs)),
            revision=max(1, record.changes),
            watched=self.present and not self.ledger.is_listed_only,
            flapping=book.tally.damping.flapping,
            penalty=penalty_at(book.tally.damping, now_ns, self._settings.half_life.ns),
            expected_rate_mbps=expected_mbps,
            downgraded=(rate_mbps or 0) < (expected_mbps or 0) if is_rated else None,
            maintenance=self.ledger.maintenance,
            grace=now_ns < book.grace_until_ns,
            repaired=record.repaired,
            bit_error_ratio=bit_error_ratio(record.quality, now_ns, rate_mbps),
            bit_error_level=record.quality.level,
            wants_state=self._wants_state,
        )

    @property
    def witness_status(self) -> WitnessStatus:
        return (
            "unreadable" if self.record.port.witness in self.errors else self.ledger.witness.status
        )

    @property
    def _wants_state(self) -> bool:
        status = self.witness_status
        if status == "unproven":
            return not is_vouched_for(self.record.port.witness or "")
        return status != "live"

    @property
    def _told_by_carrier(self) -> bool:
        """The netdev's counts tell up and down exactly, without its lagging state."""
        return self.record.carrier_on_difference is not None

    @property
    def _teller_is_unreadable(self) -> bool:
        return (CARRIER_DOWNS if self._told_by_carrier else STATE) in self.errors

    def _is_unregistered(self, sample: Sample) -> bool:
        """A descriptor said that its device is gone, and nothing of the device was read since.

        The counts of its netdev go on: they outlive the RDMA device.
        """
        if any(error == _GONE and _is_of_device(name) for name, error in sample.errors.items()):
            self.record.unregistered = True
        elif any(map(_is_of_device, sample.values)):
            self.record.unregistered = False
        return self.record.unregistered

    def _lose_track(self, now_ns: int) -> Sequence[Outage]:
        self._fresh = False
        self.record.carrier_on_difference = None
        return self.ledger.lose_track(now_ns)

    def _changes(self, now_ns: int) -> list[PortChange]:
        """What is new about the port beside its outages."""
        record, told = self.record, []
        status = self.ledger.witness.status
        if status != record.told_witness:
            record.told_witness = status
            told.append(self.changed("witness", status, now_ns))
        level = record.quality.level
        if level != record.told_level:
            record.told_level = level
            told.append(self.changed("bit_errors", level, now_ns))
        flapping = record.book.tally.damping.flapping
        if flapping != record.told_flapping:
            record.told_flapping = flapping
            told.append(self.changed("flapping" if flapping else "calm", "", now_ns))
        return told

    def _is_quiet(self, sample: Sample) -> bool:
        """Nothing that tells of the link moved, and nothing waits for time to pass.

        For most samples this holds, and then the ledger need not be asked.
        """
        witness = self.record.port.witness
        return (
            self.ledger.quiet
            and not sample.errors
            and not sample.reads & (READ_FIRST | READ_RATE)
            and _OF_THE_LINK.isdisjoint(sample.values)
            and witness not in sample.values
            and (witness is None or self.record.book.witness.value is not None)
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
            up, layer = self._state(values)
        if up and port.link_layer != "InfiniBand" and self._is_switched_off():
            up = False  # some drivers keep the carrier of an interface that is off
        is_up = self.record.book.up if up is None else up
        return LinkReading(
            sample.before_ns,
            sample.after_ns,
            witness,
            up,
            layer,
            admin=up is False and self._is_switched_off(),
            first=sample.first,
            rate_mbps=values.get(RATE_MBPS) if is_up and sample.reads & READ_RATE else None,
        )

    def _late_reading(self, sample: Sample) -> LinkReading:
        """Only what the sample itself says: what it left out was said relative to another."""
        up, layer = None, None
        if STATE in sample.values and not self._told_by_carrier:
            up, layer = self._state(sample.values)
        witness = sample.values.get(self.record.port.witness or "")
        return LinkReading(sample.before_ns, sample.after_ns, witness, up, layer)

    def _is_switched_off(self) -> bool:
        """By the interface's flag; on InfiniBand by the physical state.

        On RoCE that one is Disabled whenever the carrier is off (
        drivers/infiniband/hw/mlx5/main.c, mlx5_query_port_roce).
        """
        values = self.record.values
        if self.record.port.link_layer == "InfiniBand":
            return values.get(PHYSICAL_STATE) == PHYSICAL_DISABLED
        flags = values.get(FLAGS)
        return flags is not None and not flags & _IFF_UP

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
        # Either may have wrapped at 2^32 before the other.
        over = (ups - downs - record.carrier_on_difference) % _WRAP
        return over < _WRAP // 2

    def _state(self, values: dict[str, int]) -> tuple[bool | None, Layer | None]:
        state, physical = values.get(STATE), values.get(PHYSICAL_STATE)
        if state is None or state_is_constant(self.record.port.driver):
            return None, None
        if physical is None:
            return state in ACTIVE_STATES, None
        return state in ACTIVE_STATES, "logical" if physical == PHYSICAL_LINK_UP else "physical"


def _is_of_device(name: str) -> bool:
    return not name.startswith("net/")


def _difference(before: Port, port: Port) -> str:
    return ", ".join(
        f"{field} {getattr(before, field)} -> {getattr(port, field)}"
        for field in Port.__struct_fields__
        if getattr(before, field) != getattr(port, field)
    )
