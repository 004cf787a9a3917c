"""DeviceReader: one thread that reads the ports of one device, at its deadlines.

A dead firmware holds a reader for a minute in uninterruptible sleep: it must blind
its own device and nothing else, so no two devices share a thread.
"""

import os
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from flapd.core.fabric.catalogue import Tier
from flapd.model.observation import Sample
from flapd.model.times import MILLISECOND_NS
from flapd.sources.port_reader import PortReader
from flapd.store.ring import RingWriter

TIERS: tuple[Tier, ...] = ("fast", "slow", "rare")

Send = Callable[[Sample], bool]
"""Hands a sample on without ever waiting; False where it could not be taken."""


class WatchedPort(msgspec.Struct, frozen=True):
    """A port, and where its samples are remembered; a tier without a ring is not."""

    reader: PortReader
    rings: Mapping[Tier, RingWriter]


class DeviceReader:
    """Sweeps its ports until told to stop."""

    def __init__(
        self,
        device: str,
        ports: Sequence[WatchedPort],
        intervals_ns: Mapping[Tier, int],
        send: Send,
    ) -> None:
        self.device = device
        self.reading_since_ns: int | None = None
        """Start of the sweep that goes on now; None between sweeps."""
        self._ports = ports
        self._intervals_ns = intervals_ns
        self._send = send
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"read {device}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after its present read; does not wait for it."""
        self._stopping = True
        os.eventfd_write(self._wake, 1)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        due_ns = dict.fromkeys(TIERS, time.monotonic_ns())
        while not self._stopping:
            now_ns = time.monotonic_ns()
            for tier in TIERS:
                if due_ns[tier] <= now_ns:
                    self._sweep(tier)
                    due_ns[tier] = self._next_deadline(due_ns[tier], tier)
            wait_ns = min(due_ns.values()) - time.monotonic_ns()
            if wait_ns > 0:
                poll.poll(wait_ns / MILLISECOND_NS)
        for port in self._ports:
            port.reader.close()
            for ring in port.rings.values():
                ring.close()

    def _next_deadline(self, deadline_ns: int, tier: Tier) -> int:
        """The next on the same grid; deadlines that have passed meanwhile are left out."""
        interval_ns = self._intervals_ns[tier]
        missed = max(0, time.monotonic_ns() - deadline_ns) // interval_ns
        return deadline_ns + (missed + 1) * interval_ns

    def _sweep(self, tier: Tier) -> None:
        for port in self._ports:
            self.reading_since_ns = time.monotonic_ns()
            sample = port.reader.sweep(tier)
            self.reading_since_ns = None
            if tier in port.rings:
                port.rings[tier].append(
                    sample.before_ns, sample.after_ns, sample.reads, port.reader.values
                )
            if self._send(sample):
                port.reader.sent()
