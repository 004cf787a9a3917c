"""DeviceReader: one thread that finds and reads the ports of one device, at its deadlines.

A dead firmware holds a reader for a minute in uninterruptible sleep: it must blind
its own device and nothing else, so no two devices share a thread.
"""

import os
import select
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec

from flapd.core.fabric.catalogue import Tier
from flapd.core.fabric.parse import value_names
from flapd.model.observation import Observation, PortSeen
from flapd.model.port import Port
from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.sources.claims import Claims
from flapd.sources.discovery import ports_of_device
from flapd.sources.plan import Plan, plan_of, remembered
from flapd.sources.port_reader import PortReader
from flapd.sources.settings import PortsSettings
from flapd.store.ring import RingWriter, ring_path

TIERS: tuple[Tier, ...] = ("fast", "slow", "rare")
DESCRIBE_EVERY_NS = SECOND_NS


class Surroundings(msgspec.Struct):
    """What all readers of a sampler share."""

    sysfs: Path
    ring: Path
    boot: str
    ports: PortsSettings
    intervals_ns: Mapping[Tier, int]
    keep_ns: int
    claims: Claims
    tell: Callable[[Observation], bool]
    """Hands an observation on without ever waiting; False where it could not be taken."""
    closely: frozenset[str] = frozenset()
    """Ports whose state is read on every fast sweep."""


class WatchedPort(msgspec.Struct, frozen=True):
    """A port, and where its samples are remembered; a tier without a ring is not."""

    reader: PortReader
    rings: Mapping[Tier, RingWriter]

    def close(self) -> None:
        self.reader.close()
        for ring in self.rings.values():
            ring.close()


class DeviceReader:
    """Follows one device until told to stop."""

    def __init__(self, device: str, surroundings: Surroundings) -> None:
        self.device = device
        self.reading_since_ns: int | None = None
        """Start of what is being read now; None between reads."""
        self.has_looked = False
        """Its ports are known."""
        self.is_unreadable = False
        """It could not be said of it which ports it has."""
        self.failed_ns: int | None = None
        """When its thread ended by a fault of ours."""
        self._around = surroundings
        self._ports: dict[Port, WatchedPort] = {}
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"read {device}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after its present read; does not wait for it."""
        self._stopping = True
        os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        with ExitStack() as at_end:
            at_end.callback(os.close, self._wake)
            at_end.callback(self._close_ports)
            try:
                self._follow()
            except Exception:  # noqa: BLE001 - the one broad handler: other devices go on
                self.failed_ns = time.monotonic_ns()
                traceback.print_exc()

    def _follow(self) -> None:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        due_ns = dict.fromkeys(TIERS, time.monotonic_ns())
        describe_at_ns = 0
        while not self._stopping:
            now_ns = time.monotonic_ns()
            if describe_at_ns <= now_ns:
                self._describe()
                describe_at_ns = time.monotonic_ns() + DESCRIBE_EVERY_NS
            for tier in TIERS:
                if due_ns[tier] <= now_ns:
                    self._sweep(tier)
                    due_ns[tier] = self._next_deadline(tier)
            wait_ns = min(describe_at_ns, *due_ns.values()) - time.monotonic_ns()
            if wait_ns > 0:
                poll.poll(wait_ns / MILLISECOND_NS)

    def _next_deadline(self, tier: Tier) -> int:
        """The next on a grid that all devices share, so that the agent wakes once for all."""
        interval_ns = self._around.intervals_ns[tier]
        return (time.monotonic_ns() // interval_ns + 1) * interval_ns

    def _describe(self) -> None:
        """Looks again which ports there are, and what; what cannot be read stays as known."""
        around = self._around
        self.reading_since_ns = time.monotonic_ns()
        try:
            found = list(ports_of_device(around.sysfs, self.device, around.ports))
        except OSError as error:
            if not self.is_unreadable:
                print(f"{self.device} cannot be described: {error}", file=sys.stderr)  # noqa: T201
            self.is_unreadable = True
        else:
            claimed = [around.claims.claim(self.device, port) for port in found]
            self._watch([port for port in claimed if port is not None])
            self.has_looked = None not in claimed
            self.is_unreadable = False
        self.reading_since_ns = None

    def _watch(self, ports: list[Port]) -> None:
        if self._stopping:  # perhaps after a long hang: another has the device by now, or nobody
            self._around.claims.release(self.device)
            return
        for port in self._ports.keys() - set(ports):
            self._ports.pop(port).close()
        for port in ports:
            if port not in self._ports and self._around.tell(PortSeen(port, time.monotonic_ns())):
                self._ports[port] = self._watched(port)
        self._around.claims.release(self.device, but=frozenset(port.key for port in ports))

    def _watched(self, port: Port) -> WatchedPort:
        plan = plan_of(self._around.sysfs, port)
        rings: dict[Tier, RingWriter] = {}
        for tier in TIERS:
            try:
                rings[tier] = self._ring(port, plan, tier)
            except OSError as error:  # a full or missing tmpfs must not end the watching
                print(f"no ring for {port.name} {tier}: {error}", file=sys.stderr)  # noqa: T201
        return WatchedPort(PortReader(self._around.sysfs, port, plan), rings)

    def _ring(self, port: Port, plan: Plan, tier: Tier) -> RingWriter:
        around = self._around
        return RingWriter(
            ring_path(around.ring, port.key, tier),
            key=port.key,
            counted_by=port.counted_by,
            tier=tier,
            columns=[value for file in remembered(plan, tier) for value in value_names(file)],
            rows=max(2, around.keep_ns // around.intervals_ns[tier]),
            boot=around.boot,
        )

    def _sweep(self, tier: Tier) -> None:
        for port, watched in self._ports.items():
            self.reading_since_ns = time.monotonic_ns()
            sweep = watched.reader.sweep(tier, closely=port.key in self._around.closely)
            self.reading_since_ns = None
            if self._stopping:
                return  # perhaps after a long hang: a successor may write the ring by now
            if tier in watched.rings:
                watched.rings[tier].append(
                    sweep.before_ns, sweep.after_ns, sweep.reads, watched.reader.values
                )
            if self._around.tell(watched.reader.sample(sweep)):
                watched.reader.sent()

    def _close_ports(self) -> None:
        for watched in self._ports.values():
            watched.close()
