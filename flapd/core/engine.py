"""The engine: takes observations in order, tells events.

The same observations after the same checkpoint give the same events, on a node and
in a replay.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.view import DOWN_SECONDS_BUCKETS, DownHistogram, Snapshot
from flapd.core.fabric.watch import PortRecord, PortWatch
from flapd.model.event import Event, Outage
from flapd.model.observation import (
    ClockPair,
    Observation,
    PortGone,
    PortSeen,
    ReaderStuck,
    Sample,
    Tick,
)
from flapd.model.times import SECOND_NS

_NODE_PART = "node"
_PORT_PART = "port "
_SETTINGS_PART = "settings"


class NodeRecord(msgspec.Struct):
    """What the checkpoint holds beside the ports."""

    boot: str = ""
    wall_offset_ns: int | None = None
    down_histogram: DownHistogram = msgspec.field(default_factory=DownHistogram)


def settings_in(checkpoint: Mapping[str, bytes]) -> FlapSettings:
    """Settings in force when the checkpoint was made, the defaults where it does not say."""
    body = checkpoint.get(_SETTINGS_PART)
    return msgspec.msgpack.decode(body, type=FlapSettings) if body else FlapSettings()


class Engine:
    """All state of one node, changed by `step` alone."""

    def __init__(self, node: str, settings: FlapSettings) -> None:
        self._node = node
        self._settings = settings
        self._record = NodeRecord()
        self._ports: dict[str, PortWatch] = {}
        self._stuck: dict[str, int] = {}
        self._takes: dict[type, Callable[[Any], list[Outage]]] = {
            Sample: self._sample,
            Tick: self._tick,
            ClockPair: self._clock_pair,
            PortSeen: self._port_seen,
            PortGone: self._port_gone,
            ReaderStuck: self._reader_stuck,
        }

    def step(self, observation: Observation) -> list[Event]:
        """Takes the next observation; the events it makes known, in order."""
        return self._takes[type(observation)](observation)

    def checkpoint(self, keys: Collection[str] | None = None) -> dict[str, bytes]:
        """What `restore` needs to go on from here, in parts; of these ports alone if named.

        A part may be older than the others where nothing was told of its port since.
        """
        encode = msgspec.msgpack.encode
        parts = {
            _PORT_PART + key: encode(watch.record)
            for key, watch in self._ports.items()
            if keys is None or key in keys
        }
        parts[_NODE_PART] = encode(self._record)
        parts[_SETTINGS_PART] = encode(self._settings)
        return parts

    def restore(self, parts: Mapping[str, bytes]) -> None:
        """Goes on from a checkpoint; which ports are there now is for discovery to say."""
        decode = msgspec.msgpack.decode
        self._ports = {}
        if _NODE_PART in parts:
            self._record = decode(parts[_NODE_PART], type=NodeRecord)
        for part, body in parts.items():
            if part.startswith(_PORT_PART):
                self._watch(decode(body, type=PortRecord))

    def snapshot(self) -> Snapshot:
        """What may be shown once everything told so far is committed."""
        record = self._record
        return Snapshot(
            ports=tuple(
                sorted(
                    (watch.view() for watch in self._ports.values()),
                    key=lambda view: (view.port.device, view.port.number),
                )
            ),
            down_histogram=DownHistogram(
                list(record.down_histogram.counts), record.down_histogram.sum_ns
            ),
            stuck_readers=dict(self._stuck),
            boot=record.boot,
            wall_offset_ns=record.wall_offset_ns,
        )

    def last_read_ns(self, key: str) -> int:
        """Start of the last reading the ledger of this port took; 0 where there is none."""
        watch = self._ports.get(key)
        return watch.record.book.before_ns if watch is not None else 0

    @property
    def boot(self) -> str:
        """The boot the checkpoint speaks of."""
        return self._record.boot

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
        told = watch.observe(sample)
        self._count_closed(told)
        return told

    def _count_closed(self, told: list[Outage]) -> None:
        for outage in told:
            down_ns = self._ports[outage.key].record.book.last_down_ns
            if outage.status == "closed" and down_ns is not None:
                histogram = self._record.down_histogram
                histogram.counts[bisect_left(DOWN_SECONDS_BUCKETS, down_ns / SECOND_NS)] += 1
                histogram.sum_ns += down_ns

    def _tick(self, tick: Tick) -> list[Outage]:
        return [
            outage
            for watch in self._ports.values()
            for outage in watch.ledger.tick(tick.monotonic_ns)
        ]

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
        watch.seen(seen.port)
        return []

    def _port_gone(self, gone: PortGone) -> list[Outage]:
        watch = self._ports.get(gone.key)
        return watch.gone() if watch is not None else []

    def _reader_stuck(self, stuck: ReaderStuck) -> list[Outage]:
        if stuck.since_ns is None:
            self._stuck.pop(stuck.device, None)
        else:
            self._stuck[stuck.device] = stuck.since_ns
        for watch in self._ports.values():
            if watch.record.port.device == stuck.device and stuck.since_ns is not None:
                watch.readable = False
        return []
