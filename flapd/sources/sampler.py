"""The sampler process: reads the ports, remembers in the ring, tells the agent.

It holds no lock, no listening socket and no history, so that one which cannot die
(a reader in uninterruptible sleep) can be left behind. It ends with its agent.
"""

import argparse
import os
import select
import socket
import sys
import threading
import time
import traceback
from pathlib import Path

from flapd.core.fabric.catalogue import Tier
from flapd.core.fabric.parse import value_names
from flapd.model.observation import PortGone, PortSeen, ReaderStuck, Sample
from flapd.model.port import Port
from flapd.model.times import MILLISECOND_NS
from flapd.sources.device_reader import TIERS, DeviceReader, WatchedPort
from flapd.sources.discovery import ports_of
from flapd.sources.plan import Plan, plan_of, remembered
from flapd.sources.port_reader import PortReader
from flapd.sources.sampler_link import Orders, receive_orders, send, send_if_room
from flapd.store.ring import RingWriter, ring_path

SCOUT_EVERY_SECONDS = 1.0
STUCK_AFTER_NS = 700 * MILLISECOND_NS
LOOK_EVERY_MS = 100


class Sampler:
    """Keeps one reader a device, as discovery finds them."""

    def __init__(self, link: socket.socket, orders: Orders) -> None:
        self._link = link
        self._orders = orders
        self._sysfs = Path(orders.sysfs)
        sampling = orders.sampling
        self._intervals_ns: dict[Tier, int] = {
            "fast": sampling.interval.ns,
            "slow": sampling.slow_interval.ns,
            "rare": sampling.rare_interval.ns,
        }
        self._readers: dict[str, DeviceReader] = {}
        self._known: dict[str, tuple[Port, ...]] = {}

    def scout(self) -> None:
        """Follows which ports are there, for ever."""
        while True:
            try:
                found = self._look()
            except OSError as error:  # what cannot be listed is not known to be gone
                print(f"ports cannot be listed: {error}", file=sys.stderr)  # noqa: T201
            else:
                for device in self._known.keys() | found.keys():
                    self._follow(device, tuple(found.get(device, ())))
            time.sleep(SCOUT_EVERY_SECONDS)

    def _look(self) -> dict[str, list[Port]]:
        found: dict[str, list[Port]] = {}
        for port in ports_of(self._sysfs, self._orders.ports):
            found.setdefault(port.device, []).append(port)
        return found

    def tell_stuck_readers(self, told: dict[str, int]) -> None:
        """Tells of readers that hang in a read, and when they come back; `told` is kept by it."""
        now_ns = time.monotonic_ns()
        for device, reader in list(self._readers.items()):
            since_ns = reader.reading_since_ns
            if since_ns is not None and now_ns - since_ns > STUCK_AFTER_NS:
                if device not in told and send_if_room(
                    self._link, ReaderStuck(device, since_ns, now_ns)
                ):
                    told[device] = since_ns
            elif device in told and send_if_room(self._link, ReaderStuck(device, None, now_ns)):
                del told[device]

    def _follow(self, device: str, ports: tuple[Port, ...]) -> None:
        known = self._known.get(device, ())
        if ports == known and (not ports or self._readers[device].alive):
            return
        if device in self._readers:
            self._readers.pop(device).stop()
        now_ns = time.monotonic_ns()
        for port in known:
            if port.key not in {found.key for found in ports}:
                send(self._link, PortGone(port.key, now_ns))
        for port in ports:
            send(self._link, PortSeen(port, now_ns))
        self._known[device] = ports
        if ports:
            watched = [self._watched(port) for port in ports]
            reader = DeviceReader(device, watched, self._intervals_ns, self._send_sample)
            self._readers[device] = reader
            reader.start()
        else:
            del self._known[device]

    def _watched(self, port: Port) -> WatchedPort:
        plan = plan_of(self._sysfs, port)
        rings: dict[Tier, RingWriter] = {}
        for tier in TIERS:
            try:
                rings[tier] = self._ring(port, plan, tier)
            except OSError as error:  # a full or missing tmpfs must not end the watching
                print(f"no ring for {port.name} {tier}: {error}", file=sys.stderr)  # noqa: T201
        return WatchedPort(PortReader(self._sysfs, port, plan), rings)

    def _ring(self, port: Port, plan: Plan, tier: Tier) -> RingWriter:
        return RingWriter(
            ring_path(Path(self._orders.ring), port.key, tier),
            key=port.key,
            tier=tier,
            columns=[value for file in remembered(plan, tier) for value in value_names(file)],
            rows=max(2, self._orders.sampling.keep.ns // self._intervals_ns[tier]),
            boot=self._orders.boot,
        )

    def _send_sample(self, sample: Sample) -> bool:
        return send_if_room(self._link, sample)


def end_with_trace(failure: threading.ExceptHookArgs) -> None:
    """A thread that fails ends the process: the agent starts a new one and says so."""
    traceback.print_exception(failure.exc_value)
    os._exit(1)


def main() -> None:
    threading.excepthook = end_with_trace
    parser = argparse.ArgumentParser(prog="flapd-sampler")
    parser.add_argument("--link", type=int, required=True, help="descriptor of the agent's socket")
    link = socket.socket(fileno=parser.parse_args().link)
    sampler = Sampler(link, receive_orders(link))
    threading.Thread(target=sampler.scout, name="scout", daemon=True).start()
    poll = select.poll()
    poll.register(link, select.POLLIN | select.POLLHUP)
    stuck: dict[str, int] = {}
    while not poll.poll(LOOK_EVERY_MS):  # the agent says nothing more: readable means it has ended
        sampler.tell_stuck_readers(stuck)
    os._exit(0)  # a reader in a hanging read can't be waited for


if __name__ == "__main__":
    main()
