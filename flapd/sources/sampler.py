"""The sampler process: reads the ports, remembers in the ring, tells the agent.

It holds no lock, no listening socket and no history, so that one which cannot die
(a reader in uninterruptible sleep) can be left behind. It ends with its agent.

Its main thread reads no device: it looks after the lanes, which do, listens to the
agent, and says every second how reading goes. A scout follows which devices there are.
"""

import argparse
import os
import resource
import select
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flapd.core.fabric.catalogue import Tier, driver_of
from flapd.model.observation import PortsPresent, ReaderStuck
from flapd.model.port import Port
from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.sources.claims import Claims
from flapd.sources.device_reader import DeviceReader, Surroundings
from flapd.sources.discovery import devices_of
from flapd.sources.kernel_voices import KernelVoices
from flapd.sources.lanes import HANGS_AFTER_NS, Lanes
from flapd.sources.listener import Listener
from flapd.sources.netdev_asker import NetdevAsker
from flapd.sources.pace import within_budget
from flapd.sources.port_rings import RingSettings
from flapd.sources.processes import start_time
from flapd.sources.read_meter import ReadMeter
from flapd.sources.sampler_link import (
    Orders,
    Outbox,
    ReadNow,
    SourcesHeard,
    Told,
    WatchClosely,
    receive_request,
)

SCOUT_EVERY_SECONDS = 0.5
GONE_AFTER_NS = SECOND_NS
"""A port that is found under another name meanwhile was not gone."""
STUCK_AFTER_NS = 650 * MILLISECOND_NS
LOOK_EVERY_MS = 200
AFTER_FAULT_NS = 10 * SECOND_NS
HEALTH_EVERY_NS = SECOND_NS
COMMANDS_PER_SECOND = 450
"""What reading may ask of the firmware of all devices of a node together;"""
COMMANDS_PER_SECOND_BY_NETLINK = 400
"""and where netlink tells of all of them, which it does for less."""


class Sampler:
    """Keeps one reader a device, as discovery finds them."""

    def __init__(self, link: socket.socket, orders: Orders) -> None:
        self._outbox = Outbox(link)
        self._left_behind = orders.left_behind
        sampling = orders.sampling
        intervals_ns: dict[Tier, int] = {
            "fast": sampling.interval.ns,
            "slow": sampling.slow_interval.ns,
            "rare": sampling.rare_interval.ns,
        }
        self._around = Surroundings(
            sysfs=Path(orders.sysfs),
            rings=RingSettings(
                Path(orders.ring),
                orders.boot,
                sampling.keep.ns,
                intervals_ns,
                statistics="ethtool" not in orders.silent,
            ),
            ports=orders.ports,
            intervals_ns=intervals_ns,
            claims=Claims(),
            tell=self.tell,
            meter=ReadMeter(),
            was_up=set(orders.known_up),
            no_netlink=orders.silent.get("rdma_netlink"),
        )
        self._silent = orders.silent
        if "ethtool" not in orders.silent:
            rare_ns = intervals_ns["rare"]
            self._around.asker = NetdevAsker(
                self._around.sysfs, rare_ns, self._tell_now, self._may_ask
            )
            self._around.asker.start()
        self._lanes = Lanes(self.flush)
        self._readers: dict[str, DeviceReader] = {}
        self._last_held_ns: dict[str, int] = {}
        self._told: PortsPresent | None = None
        self._told_stuck: dict[str, int] = {}
        self._told_sources: dict[str, dict[str, str]] = {}
        self._held: dict[str, bool] = {}
        """Devices that verbs may tell of; True: the driver lets go of one that is held."""
        self._look_now = threading.Event()
        self.voices = KernelVoices(orders, self)

    def scout(self) -> None:
        """Follows which devices are there, for ever."""
        trouble = ""
        while True:
            try:
                devices = devices_of(self._around.sysfs)
            except OSError as error:  # what cannot be listed is not known to be gone
                if str(error) != trouble:
                    trouble = str(error)
                    print(f"devices cannot be listed: {error}", file=sys.stderr)  # noqa: T201
            else:
                trouble = ""
                self._follow(set(devices))
                self._hold()
                self._keep_to_budget()
                self._tell_present()
            self._look_now.wait(SCOUT_EVERY_SECONDS)
            self._look_now.clear()

    def watch_closely(self, request: WatchClosely) -> None:
        self._around.closely = request.keys

    def hurry(self, concerns: Callable[[Port], bool]) -> bool:
        """Has the ports that something is about read at once; from any thread."""
        hurried = [reader for reader in list(self._readers.values()) if reader.hurry(concerns)]
        for reader in hurried:
            self._lanes.wake(reader)
        return bool(hurried)

    def read_now(self, request: ReadNow) -> None:
        self.hurry(lambda port: port.key in request.keys)

    def look_again(self, device: str | None) -> None:
        """Has the scout look, and this device described anew; None: all of them."""
        for name, reader in list(self._readers.items()):
            if device in {None, name}:
                reader.look_again()
                self._lanes.wake(reader)
        self._look_now.set()

    def look(self) -> None:
        """What no lane can do for itself; to be called all the time."""
        self._lanes.look()
        self._tell_stuck_readers()
        self.flush()  # what was read before something hung

    def tell_health(self) -> None:
        health = self._around.meter.take()
        readers = list(self._readers.items())
        health.slowed = {device: reader.factor for device, reader in readers}
        health.rings_missing = {device: reader.rings_missing for device, reader in readers}
        if not self.tell(health, urgent=False):
            self._around.meter.give_back(health)
        sources = {device: self._sources_of(reader) for device, reader in readers}
        if sources != self._told_sources and self.tell(SourcesHeard(sources), urgent=False):
            self._told_sources = sources

    def _sources_of(self, reader: DeviceReader) -> dict[str, str]:
        """Of several ports of a device, that which it is worst with."""
        asker, ports = self._around.asker, reader.ports
        sources = {"rdma_netlink": reader.netlink_source, **self.voices.sources_of(reader.device)}
        if reader.why_no_product_data is not None:
            sources["product_data"] = reader.why_no_product_data
        if asker is None:
            return sources | {"ethtool": self._silent["ethtool"]}
        for name, source_of in {"ethtool": asker.source_of, "module": asker.module_of}.items():
            told = [source_of(port) for port in ports] or ["it has no port that is watched"]
            sources[name] = next((why for why in told if why != "on"), "on")
        return sources

    def _may_ask(self, device: str) -> bool:
        """Whether it answers at present, and no earlier sampler hangs in the kernel."""
        reader = self._readers.get(device)
        return reader is not None and not self._left_behind and _answers(reader)

    def _hold(self) -> None:
        """Opening a device that does not answer would hold up all of this process."""
        if not self._left_behind:
            self._held = {
                device: driver_of(reader.ports[0].driver).disassociates
                for device, reader in self._readers.items()
                if reader.ports and (device in self._held or _answers(reader))
            }
            self.voices.hold(self._held)

    def _tell_stuck_readers(self) -> None:
        """Tells of readers that hang, once each, and when they come back."""
        now_ns = time.monotonic_ns()
        stuck = self._stuck(now_ns)
        for device in stuck.keys() - self._told_stuck.keys():
            if self.tell(ReaderStuck(device, stuck[device], now_ns)):
                self._told_stuck[device] = stuck[device]
        for device in self._told_stuck.keys() - stuck.keys():
            if self.tell(ReaderStuck(device, None, now_ns)):
                del self._told_stuck[device]

    def _stuck(self, now_ns: int) -> dict[str, int]:
        return {
            device: since_ns
            for device, reader in list(self._readers.items())
            if (since_ns := reader.reading_since_ns) is not None
            and now_ns - since_ns > STUCK_AFTER_NS
        }

    def _follow(self, devices: set[str]) -> None:
        devices -= self._left_out()
        for device in self._readers.keys() - devices:
            self._lanes.remove(self._readers.pop(device))
            self._around.claims.release(device)
            if self._around.asker is not None:
                self._around.asker.follow(device, {})
        for device in devices:
            reader = self._readers.get(device)
            if reader is None or self._may_try_again(reader):
                self._around.claims.release(device)
                self._readers[device] = DeviceReader(device, self._around)
                self._lanes.add(self._readers[device])

    def _keep_to_budget(self) -> None:
        costs = {device: reader.commands_per_second for device, reader in self._readers.items()}
        by_netlink = all(reader.netlink_source == "on" for reader in self._readers.values())
        budget = COMMANDS_PER_SECOND_BY_NETLINK if by_netlink else COMMANDS_PER_SECOND
        for device, factors in within_budget(costs, budget).items():
            self._readers[device].budget_factors = factors

    def _may_try_again(self, reader: DeviceReader) -> bool:
        failed_ns = reader.failed_ns
        return failed_ns is not None and time.monotonic_ns() - failed_ns > AFTER_FAULT_NS

    def _left_out(self) -> set[str]:
        """Devices in which an earlier sampler still hangs: we would hang there too."""
        self._left_behind = tuple(
            old for old in self._left_behind if start_time(old.pid) == old.started
        )
        return {device for old in self._left_behind for device in old.devices}

    def _tell_present(self) -> None:
        """Tells which ports are there whenever that has changed, once each device was looked at."""
        now_ns = time.monotonic_ns()
        stuck = self._stuck(now_ns)
        readers = self._readers
        blind = self._left_out() | {
            device
            for device, reader in readers.items()
            if reader.is_unreadable
            or reader.failed_ns is not None
            or (device in stuck and not reader.has_looked)
        }
        if any(not reader.has_looked for device, reader in readers.items() if device not in blind):
            return
        self._last_held_ns.update(dict.fromkeys(self._around.claims.keys(), now_ns))
        keys = sorted(
            key for key, held_ns in self._last_held_ns.items() if now_ns - held_ns < GONE_AFTER_NS
        )
        present = PortsPresent(tuple(keys), tuple(sorted(blind)), now_ns)
        told = self._told
        if told is None or (told.keys, told.blind) != (present.keys, present.blind):
            self._told = present if self.tell(present) else told

    def tell(self, message: Told, *, urgent: bool = True) -> bool:
        """Without ever waiting; False where the agent has no room now."""
        with _ending_with_the_agent():
            return self._outbox.put(message, urgent=urgent)

    def _tell_now(self, message: Told) -> bool:
        is_told = self.tell(message)
        self.flush()
        return is_told

    def flush(self) -> None:
        with _ending_with_the_agent():
            self._outbox.flush()


def _answers(reader: DeviceReader) -> bool:
    """It was read, and what is read of it now was not begun long ago."""
    since_ns = reader.reading_since_ns
    is_prompt = since_ns is None or time.monotonic_ns() - since_ns < HANGS_AFTER_NS
    return reader.has_looked and not reader.is_unreadable and is_prompt


@contextmanager
def _ending_with_the_agent() -> Iterator[None]:
    try:
        yield
    except OSError:
        os._exit(0)


def end_with_trace(failure: threading.ExceptHookArgs) -> None:
    """A thread that fails ends the process: the agent starts a new one and says so."""
    traceback.print_exception(failure.exc_value)
    os._exit(1)


def allow_many_files() -> None:
    """A port of mlx5 has some sixty files, kept open; the usual soft limit is 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> None:
    parser = argparse.ArgumentParser(prog="flapd-sampler")
    parser.add_argument("--link", type=int, required=True, help="descriptor of the agent's socket")
    link = socket.socket(fileno=parser.parse_args().link)
    threading.excepthook = end_with_trace
    allow_many_files()
    orders = receive_request(link)
    if not isinstance(orders, Orders):
        return
    sampler = Sampler(link, orders)
    threading.Thread(target=sampler.scout, name="scout", daemon=True).start()
    serve(link, sampler)
    os._exit(0)  # a reader in a hanging read can't be waited for


def _hear(link: socket.socket, listeners: Sequence[Listener[Any]]) -> bool:
    """Hears what the kernel tells meanwhile; whether the agent wants something."""
    waiting = select.poll()
    waiting.register(link, select.POLLIN | select.POLLHUP)
    by_fd = {fd: listener for listener in listeners if (fd := listener.fileno()) is not None}
    for fd in by_fd:
        waiting.register(fd, select.POLLIN)
    now_ns = time.monotonic_ns()
    breathing_ns = [each.again_ns - now_ns for each in listeners if each.again_ns > now_ns]
    within_ms = min([LOOK_EVERY_MS, *(ns // MILLISECOND_NS + 1 for ns in breathing_ns)])
    ready = [fd for fd, _ in waiting.poll(within_ms)]
    for fd in by_fd.keys() & ready:
        by_fd[fd].hear()
    return link.fileno() in ready


def serve(link: socket.socket, sampler: Sampler) -> None:
    """Until the agent ends."""
    health_at_ns = 0
    while True:
        if _hear(link, sampler.voices.listeners):
            request = receive_request(link)
            if isinstance(request, WatchClosely):
                sampler.watch_closely(request)
            elif isinstance(request, ReadNow):
                sampler.read_now(request)
            else:
                return
        sampler.look()
        if time.monotonic_ns() >= health_at_ns:
            sampler.tell_health()
            health_at_ns = time.monotonic_ns() + HEALTH_EVERY_NS


if __name__ == "__main__":
    main()
