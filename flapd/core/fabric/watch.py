"""PortWatch: one port's samples merged into what stands now, and read for its link."""

from collections.abc import Sequence

import msgspec

from flapd.core.fabric.catalogue import (
    CARRIER,
    CARRIER_DOWNS,
    CARRIER_UPS,
    FLAGS,
    PHYSICAL_STATE,
    RATE_MBPS,
    STATE,
    is_vouched_for,
    saturated_among,
)
from flapd.core.fabric.damping import penalty_at
from flapd.core.fabric.ledger import Ledger
from flapd.core.fabric.link import Link
from flapd.core.fabric.module_identity import ModuleIdentity
from flapd.core.fabric.quality import SYMBOL_ERRORS, bit_error_ratio, look
from flapd.core.fabric.reasons import Reason
from flapd.core.fabric.record import PortRecord
from flapd.core.fabric.reserve import Reserve
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.view import NOT_READ, PortView, Repair, WitnessStatus
from flapd.model.event import Change, Event, Outage, PortChange, port_id
from flapd.model.observation import (
    READ_FIRST,
    READ_RATE,
    READ_STATE,
    READ_STATISTICS,
    READ_WITNESS,
    LinkHint,
    Sample,
)
from flapd.model.port import Port
from flapd.model.times import SECOND_NS

_OF_THE_LINK = frozenset({STATE, PHYSICAL_STATE, CARRIER, CARRIER_DOWNS, CARRIER_UPS, FLAGS})
_OF_NETDEV = ("net/", "ethtool/")
_GONE = "ENODEV"
"""What a descriptor gives whose device was unregistered, also if it is back by now."""


class PortWatch:
    """Follows one port."""

    def __init__(self, node: str, record: PortRecord, *, boot: str, settings: FlapSettings) -> None:
        self.record = record
        self.ledger = Ledger(node, record.port, record.book, boot=boot, settings=settings)
        self._link = Link(record)
        self._reserve = Reserve(record.reserve, self.ledger)
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
            self._forget_counts()
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
        told = self.ledger.begin_boot(boot, shift_ns)
        self._forget_counts()
        return [*told]

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
            return [*self.ledger.observe(self._link.late_reading(sample))]
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
            counted = reads & self._counted_with
            up = True if tells_state else None
            self.ledger.stamp(sample.before_ns, witness=bool(counted), up=up)
            if reads & READ_STATISTICS:
                self._reserve.look(sample, self.record.values, self.errors, moves=False)
            return []
        outages = self._observe_link(sample)
        self._reserve.look(sample, self.record.values, self.errors, moves=True)
        return [*outages, *self._changes(sample.after_ns)]

    def _observe_link(self, sample: Sample) -> list[Outage]:
        ledger = self.ledger
        if (overtaken := self._link.overtaken_reading(sample)) is not None:
            return ledger.overtaken(overtaken)
        counted = sample.reads & self._counted_with
        value = self.record.values.get(ledger.witness.name or "") if counted else None
        resets = self.record.book.witness.resets
        outages = ledger.observe(self._link.reading(sample, value))
        if self.record.book.witness.resets != resets:
            self._link.carrier.forget_netdev()
        return outages

    def hear(self, hint: LinkHint) -> list[Event]:
        """The kernel tells of its netdev: what its counts have counted had happened by then."""
        heard = self._link.hear(hint)
        if heard is None:
            return []
        outages = self.ledger.hear(heard.reading, is_news=heard.is_news)
        return [*outages, *self._changes(hint.monotonic_ns)]

    def explain(self, reason: Reason, now_ns: int) -> list[Event]:
        """Somebody says why it went down, or that it did."""
        return [*self.ledger.explain(reason, now_ns)]

    def module_seen(self, module: ModuleIdentity, now_ns: int) -> list[Event]:
        """What is plugged in now."""
        before, self.record.module = self.record.module, module
        if module == before:
            return []
        note = " ".join(part or "-" for part in (module.vendor, module.part, module.serial))
        return [self.changed("module", note, now_ns)]

    def changed(self, change: Change, note: str, now_ns: int) -> PortChange:
        """The next revision of the port."""
        record = self.record
        # A node that lost its history goes on above what it told the fleet before.
        record.changes = record.changes + 1 if record.changes else self._wall_seconds(now_ns)
        return PortChange(
            id=port_id(self._node, record.port.key),
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

    def _wall_seconds(self, now_ns: int) -> int:
        return max(1, (now_ns + self.ledger.wall_offset_ns) // SECOND_NS)

    def view(self, now_ns: int) -> PortView:
        record, book = self.record, self.record.book
        outage = self.ledger.open_outage
        counter = self.ledger.witness.name
        witness_error = counter in self.errors
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
            saturated=saturated_among(values),
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
            counter=counter,
            module=record.module,
        )

    @property
    def witness_status(self) -> WitnessStatus:
        witness = self.ledger.witness
        return "unreadable" if witness.name in self.errors else witness.status

    @property
    def _wants_state(self) -> bool:
        status = self.witness_status
        if status == "unproven":
            return not is_vouched_for(self.record.port.witness or "")
        return status != "live" or self.record.reserve.in_use

    @property
    def _counted_with(self) -> int:
        """What tells that the counter of downs was read."""
        return READ_STATISTICS if self.record.reserve.in_use else READ_WITNESS

    @property
    def _told_by_carrier(self) -> bool:
        """The netdev's counts tell up and down exactly, without its lagging state."""
        return self._link.carrier.is_told

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
        told = self.ledger.lose_track(now_ns)
        self._forget_counts()
        return told

    def _forget_counts(self) -> None:
        self._link.carrier.forget()
        self._reserve.forget()

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
        witness, record = self.ledger.witness.name, self.record
        return (
            self.ledger.quiet
            and record.carrier.told is None
            and not sample.errors
            and not sample.reads & (READ_FIRST | READ_RATE)
            and _OF_THE_LINK.isdisjoint(sample.values)
            and witness not in sample.values
            and (witness is None or record.book.witness.value == record.values.get(witness))
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


def _is_of_device(name: str) -> bool:
    return not name.startswith(_OF_NETDEV)


def _difference(before: Port, port: Port) -> str:
    return ", ".join(
        f"{field} {getattr(before, field)} -> {getattr(port, field)}"
        for field in Port.__struct_fields__
        if getattr(before, field) != getattr(port, field)
    )
