"""The fabric of one node: its ports, what is known of each, and what they do together."""

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from flapd.core.fabric.expected import Sibling, expected_rate_mbps, ports_expected
from flapd.core.fabric.maintenance import Works
from flapd.core.fabric.module_identity import ModuleIdentity
from flapd.core.fabric.naming import Names
from flapd.core.fabric.reasons import reason_in_log, reason_of_link
from flapd.core.fabric.record import PortRecord
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.view import DOWN_SECONDS_BUCKETS, DownHistogram, Snapshot
from flapd.core.fabric.watch import PortWatch
from flapd.model.event import Event, Outage
from flapd.model.observation import (
    ClockPair,
    Expectations,
    KernelHint,
    KernelLine,
    LinkHint,
    LinkReason,
    Maintenance,
    ModuleSeen,
    PortSeen,
    PortsPresent,
    ReaderStuck,
    Repaired,
    Sample,
    Tick,
)
from flapd.model.port import Port
from flapd.model.times import SECOND_NS

MOST_FORGOTTEN = 1000
"""The oldest go: cards are replaced, and software devices come and go, for years."""


class Forgotten(msgspec.Struct, frozen=True):
    """What a port that is forgotten and found again goes on from: no id is used twice."""

    changes: int
    names: Names


class FabricRecord(msgspec.Struct):
    """What the checkpoint holds of the fabric."""

    boot: str = ""
    wall_offset_ns: int | None = None
    down_histogram: DownHistogram = msgspec.field(default_factory=DownHistogram)
    ports: list[PortRecord] = msgspec.field(default_factory=list)
    forgotten: dict[str, Forgotten] = msgspec.field(default_factory=dict)
    """By port key."""
    works: Works = msgspec.field(default_factory=Works)
    expectations: Expectations = Expectations(None, None)


class Fabric:
    """Takes what concerns ports, tells outages and what else changed."""

    def __init__(
        self, node: str, settings: FlapSettings, stale_after_ns: int, record: FabricRecord
    ) -> None:
        self._node = node
        self._settings = settings
        self.stale_after_ns = stale_after_ns
        """A port that was not read for so long is not known to be up."""
        self._record = record
        self._stuck: dict[str, int] = {}
        self._is_scouted = False
        self._blind: frozenset[str] = frozenset()
        self._now_ns = 0
        self._ports: dict[str, PortWatch] = {}
        for port in record.ports:
            self._watch(port)
        self._apply_maintenance()
        self.takes: dict[type, Callable[[Any], list[Event]]] = {
            Sample: self._sample,
            LinkHint: self._link_hint,
            LinkReason: self._link_reason,
            KernelHint: self._kernel_hint,
            ModuleSeen: self._module_seen,
            Tick: self._tick,
            ClockPair: self._clock_pair,
            PortSeen: self._port_seen,
            PortsPresent: self._ports_present,
            ReaderStuck: self._reader_stuck,
            Expectations: self._expectations,
            Maintenance: self._maintenance,
            Repaired: self._repaired,
        }

    @property
    def record(self) -> FabricRecord:
        self._record.ports = [watch.record for watch in self._ports.values()]
        return self._record

    def port(self, key: str) -> PortRecord | None:
        watch = self._ports.get(key)
        return watch.record if watch is not None else None

    def holds(self, outage: Outage) -> bool:
        """It is followed, or still being counted."""
        watch = self._ports.get(outage.key)
        return watch is not None and outage.id in watch.record.book.outages

    def snapshot(self) -> Snapshot:
        record = self._record
        histogram = record.down_histogram
        views = [watch.view(self._now_ns) for watch in self._ports.values()]
        return Snapshot(
            ports=tuple(
                sorted(
                    views,
                    key=lambda view: (view.port.device, view.port.number, view.port.member or ""),
                )
            ),
            down_histogram=DownHistogram(list(histogram.counts), histogram.sum_ns),
            stuck_readers=dict(self._stuck),
            blind=self._blind,
            boot=record.boot,
            wall_offset_ns=record.wall_offset_ns,
            maintenance=tuple(record.works.views(record.wall_offset_ns or 0)),
            ports_expected=ports_expected(views, record.expectations),
            is_scouted=self._is_scouted,
        )

    def _watch(self, record: PortRecord) -> PortWatch:
        watch = PortWatch(self._node, record, boot=self._record.boot, settings=self._settings)
        watch.ledger.know_clock(self._record.wall_offset_ns or 0)
        self._ports[record.port.key] = watch
        self._look_around()
        return watch

    def _sample(self, sample: Sample) -> list[Event]:
        watch = self._ports.get(sample.key)
        if watch is None:
            return []
        self._now_ns = max(self._now_ns, sample.after_ns)
        self._stuck.pop(watch.record.port.device, None)
        best_mbps = watch.record.book.best_rate_mbps
        events = self._counted(watch, partial(watch.observe, sample))
        if watch.record.book.best_rate_mbps != best_mbps:
            self._look_around()
        return events

    def _link_hint(self, hint: LinkHint) -> list[Event]:
        self._now_ns = max(self._now_ns, hint.monotonic_ns)
        return [
            event
            for watch in self._ports.values()
            if watch.record.port.netdev == hint.netdev
            for event in self._counted(watch, partial(watch.hear, hint))
        ]

    def _link_reason(self, told: LinkReason) -> list[Event]:
        watch = self._ports.get(told.key)
        return [] if watch is None else watch.explain(reason_of_link(told), told.after_ns)

    def _kernel_hint(self, hint: KernelHint) -> list[Event]:
        reason = reason_in_log(hint)
        if reason is None:
            return []
        named = [watch for watch in self._ports.values() if _names(hint.line, watch.record.port)]
        return [event for watch in named for event in watch.explain(reason, hint.received_ns)]

    def _module_seen(self, seen: ModuleSeen) -> list[Event]:
        watch = self._ports.get(seen.key)
        if watch is None:
            return []
        module = ModuleIdentity(seen.vendor, seen.part, seen.serial)
        return watch.module_seen(module, seen.monotonic_ns)

    def _counted(self, watch: PortWatch, step: Callable[[], list[Event]]) -> list[Event]:
        """Puts the flap that ends with this step, if one does, into the histogram."""
        totals = watch.record.book.tally.totals
        ended = totals.ended
        events = step()
        if totals.ended > ended:
            down_ns = watch.record.book.ended_ns
            histogram = self._record.down_histogram
            histogram.counts[bisect_left(DOWN_SECONDS_BUCKETS, down_ns / SECOND_NS)] += 1
            histogram.sum_ns += down_ns
        return events

    def _tick(self, tick: Tick) -> list[Event]:
        now_ns = tick.monotonic_ns
        self._now_ns = max(self._now_ns, now_ns)
        events: list[Event] = []
        for watch in self._ports.values():
            if now_ns - (watch.last_read_ns or 0) > self.stale_after_ns:
                watch.not_read()
            events += watch.pass_time(now_ns)
        planned = len(self._record.works.planned)
        self._record.works.end_due(now_ns)
        if len(self._record.works.planned) < planned:
            events += self._tell_maintenance("it is over", now_ns)
        return events

    def _forget(self, key: str, now_ns: int) -> list[Event]:
        watch = self._ports.pop(key)
        events = watch.forget(now_ns)
        forgotten = self._record.forgotten
        forgotten[key] = Forgotten(watch.record.changes, watch.record.book.names)
        while len(forgotten) > MOST_FORGOTTEN:
            del forgotten[next(iter(forgotten))]
        return events

    def _clock_pair(self, pair: ClockPair) -> list[Event]:
        record, events = self._record, []
        offset_ns = pair.unix_ns - pair.monotonic_ns
        before_ns = offset_ns if record.wall_offset_ns is None else record.wall_offset_ns
        shift_ns = before_ns - offset_ns
        record.wall_offset_ns = offset_ns
        for watch in self._ports.values():
            watch.ledger.know_clock(offset_ns)
        if pair.boot != record.boot:
            record.boot, self._now_ns = pair.boot, pair.monotonic_ns
            record.works.begin_boot(shift_ns)
            for watch in self._ports.values():
                events += self._counted(watch, partial(watch.begin_boot, pair.boot, shift_ns))
        return events

    def _port_seen(self, seen: PortSeen) -> list[Event]:
        port, now_ns = seen.port, seen.monotonic_ns
        watch, events = self._ports.get(port.key), []
        if watch is None:
            events += self._replaced_by(port, now_ns)
            watch = self._watch(self._new_record(port))
            self._apply_maintenance()
        return events + self._counted(watch, partial(watch.seen, port, now_ns))

    def _new_record(self, port: Port) -> PortRecord:
        record = PortRecord(port)
        record.book.grace_until_ns = self._settings.boot_grace.ns
        known = self._record.forgotten.pop(port.key, None)
        if known is not None:
            record.changes, record.book.names = known.changes, known.names
        return record

    def _replaced_by(self, port: Port, now_ns: int) -> list[Event]:
        """A card that is gone and whose place another took will not come back."""
        gone = [
            key
            for key, watch in self._ports.items()
            if watch.record.gone_unix_ns is not None
            and (watch.record.port.name, watch.record.port.member) == (port.name, port.member)
        ]
        return [event for key in gone for event in self._forget(key, now_ns)]

    def _ports_present(self, present: PortsPresent) -> list[Event]:
        """Ports that the last agent or sampler knew may be gone since."""
        self._is_scouted = True
        self._blind = frozenset(present.blind)
        keys = set(present.keys)
        return [
            event
            for key, watch in self._ports.items()
            if key not in keys and watch.record.port.device not in present.blind
            for event in self._counted(watch, partial(watch.gone, present.monotonic_ns))
        ]

    def _reader_stuck(self, stuck: ReaderStuck) -> list[Event]:
        if stuck.since_ns is None:
            self._stuck.pop(stuck.device, None)
            return []
        self._stuck[stuck.device] = stuck.since_ns
        for watch in self._ports.values():
            if watch.record.port.device == stuck.device:
                watch.not_read()
        return []

    def _expectations(self, told: Expectations) -> list[Event]:
        self._record.expectations = told
        self._look_around()
        return []

    def _look_around(self) -> None:
        """How fast each port should be, by what its siblings are."""
        siblings = {key: _sibling(watch.record) for key, watch in self._ports.items()}
        for key, watch in self._ports.items():
            watch.ledger.expected_rate_mbps = expected_rate_mbps(
                siblings[key], siblings.values(), self._record.expectations
            )

    def _maintenance(self, work: Maintenance) -> list[Event]:
        self._record.works.plan(work)
        is_begun = work.until_ns > work.monotonic_ns
        return self._tell_maintenance(work.reason if is_begun else "it is over", work.monotonic_ns)

    def _tell_maintenance(self, note: str, now_ns: int) -> list[Event]:
        return [watch.changed("maintenance", note, now_ns) for watch in self._apply_maintenance()]

    def _apply_maintenance(self) -> list[PortWatch]:
        """Those for which it begins or ends."""
        changed = []
        for key, watch in self._ports.items():
            is_on = self._record.works.of(key) is not None
            if watch.ledger.maintenance != is_on:
                watch.ledger.maintenance = is_on
                changed.append(watch)
        return changed

    def _repaired(self, repaired: Repaired) -> list[Event]:
        """A port that is gone was taken out for good."""
        watch = self._ports.get(repaired.key)
        if watch is None:
            return []
        events = watch.repaired(repaired.note, repaired.monotonic_ns)
        if watch.record.gone_unix_ns is not None:
            events += self._forget(repaired.key, repaired.monotonic_ns)
        return events


def _names(line: KernelLine, port: Port) -> bool:
    """Its netdev or device; else all ports of its function, where that is all it names."""
    if line.netdev is not None:
        return line.netdev == port.netdev
    if line.device is not None:
        return line.device == port.device
    return line.pci is not None and line.pci == port.pci


def _sibling(record: PortRecord) -> Sibling:
    return Sibling(record.port.driver, record.port.link_layer, record.book.best_rate_mbps)
