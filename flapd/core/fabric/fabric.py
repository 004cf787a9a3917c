"""The fabric of one node: its ports, what is known of each, and what they do together."""

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import msgspec

from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.view import DOWN_SECONDS_BUCKETS, DownHistogram, Snapshot
from flapd.core.fabric.watch import PortRecord, PortWatch
from flapd.model.event import Outage
from flapd.model.observation import (
    ClockPair,
    PortSeen,
    PortsPresent,
    ReaderStuck,
    Sample,
    Tick,
)
from flapd.model.times import SECOND_NS


class FabricRecord(msgspec.Struct):
    """What the checkpoint holds of the fabric."""

    boot: str = ""
    wall_offset_ns: int | None = None
    down_histogram: DownHistogram = msgspec.field(default_factory=DownHistogram)
    ports: list[PortRecord] = msgspec.field(default_factory=list)


class Fabric:
    """Takes what concerns ports, tells outages."""

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
        self._ports: dict[str, PortWatch] = {}
        for port in record.ports:
            self._watch(port)
        self.takes: dict[type, Callable[[Any], list[Outage]]] = {
            Sample: self._sample,
            Tick: self._tick,
            ClockPair: self._clock_pair,
            PortSeen: self._port_seen,
            PortsPresent: self._ports_present,
            ReaderStuck: self._reader_stuck,
        }

    @property
    def record(self) -> FabricRecord:
        self._record.ports = [watch.record for watch in self._ports.values()]
        return self._record

    def port(self, key: str) -> PortRecord | None:
        watch = self._ports.get(key)
        return watch.record if watch is not None else None

    def snapshot(self) -> Snapshot:
        histogram = self._record.down_histogram
        views = [watch.view() for watch in self._ports.values()]
        return Snapshot(
            ports=tuple(sorted(views, key=lambda view: (view.port.device, view.port.number))),
            down_histogram=DownHistogram(list(histogram.counts), histogram.sum_ns),
            stuck_readers=dict(self._stuck),
            boot=self._record.boot,
            wall_offset_ns=self._record.wall_offset_ns,
            is_scouted=self._is_scouted,
        )

    def _watch(self, record: PortRecord) -> PortWatch:
        watch = PortWatch(
            self._node,
            record,
            boot=self._record.boot,
            drop_after_ns=self._settings.drop_after.ns,
        )
        watch.ledger.wall_offset_ns = self._record.wall_offset_ns or 0
        self._ports[record.port.key] = watch
        return watch

    def _sample(self, sample: Sample) -> list[Outage]:
        watch = self._ports.get(sample.key)
        if watch is None:
            return []
        self._stuck.pop(watch.record.port.device, None)
        ended = watch.record.book.totals.ended
        told = watch.observe(sample)
        if watch.record.book.totals.ended > ended:
            self._count_closed(watch)
        return told

    def _count_closed(self, watch: PortWatch) -> None:
        down_ns = watch.record.book.last_down_ns or 0
        histogram = self._record.down_histogram
        histogram.counts[bisect_left(DOWN_SECONDS_BUCKETS, down_ns / SECOND_NS)] += 1
        histogram.sum_ns += down_ns

    def _tick(self, tick: Tick) -> list[Outage]:
        for watch in self._ports.values():
            if tick.monotonic_ns - (watch.last_read_ns or 0) > self.stale_after_ns:
                watch.not_read()
        return []

    def _clock_pair(self, pair: ClockPair) -> list[Outage]:
        told: list[Outage] = []
        if pair.boot != self._record.boot:
            self._record.boot = pair.boot
            for watch in self._ports.values():
                told += watch.ledger.begin_boot(pair.boot)
        self._record.wall_offset_ns = pair.unix_ns - pair.monotonic_ns
        for watch in self._ports.values():
            watch.ledger.wall_offset_ns = self._record.wall_offset_ns
        return told

    def _port_seen(self, seen: PortSeen) -> list[Outage]:
        watch = self._ports.get(seen.port.key) or self._watch(PortRecord(seen.port))
        return watch.seen(seen.port, seen.monotonic_ns)

    def _ports_present(self, present: PortsPresent) -> list[Outage]:
        """Ports that the last agent or sampler knew may be gone since."""
        self._is_scouted = True
        keys = set(present.keys)
        return [
            outage
            for key, watch in self._ports.items()
            if key not in keys and watch.record.port.device not in present.blind
            for outage in watch.gone(present.monotonic_ns)
        ]

    def _reader_stuck(self, stuck: ReaderStuck) -> list[Outage]:
        if stuck.since_ns is None:
            self._stuck.pop(stuck.device, None)
            return []
        self._stuck[stuck.device] = stuck.since_ns
        for watch in self._ports.values():
            if watch.record.port.device == stuck.device:
                watch.not_read()
        return []
