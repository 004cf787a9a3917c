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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flapd.core.fabric.catalogue import Tier
from flapd.model.observation import PortsPresent, ReaderStuck
from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.sources.claims import Claims
from flapd.sources.device_reader import DeviceReader, Surroundings
from flapd.sources.discovery import devices_of
from flapd.sources.lanes import Lanes
from flapd.sources.pace import within_budget
from flapd.sources.processes import start_time
from flapd.sources.read_meter import ReadMeter
from flapd.sources.sampler_link import Orders, Outbox, Told, WatchClosely, receive_request

SCOUT_EVERY_SECONDS = 0.5
GONE_AFTER_NS = SECOND_NS
"""A port that is found under another name meanwhile was not gone."""
STUCK_AFTER_NS = 650 * MILLISECOND_NS
LOOK_EVERY_MS = 200
AFTER_FAULT_NS = 10 * SECOND_NS
HEALTH_EVERY_NS = SECOND_NS
COMMANDS_PER_SECOND = 450
"""What reading may ask of the firmware of all devices of a node together."""


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
            ring=Path(orders.ring),
            boot=orders.boot,
            ports=orders.ports,
            intervals_ns=intervals_ns,
            keep_ns=sampling.keep.ns,
            claims=Claims(),
            tell=self.tell,
            meter=ReadMeter(),
            was_up=set(orders.known_up),
        )
        self._lanes = Lanes(self.flush)
        self._readers: dict[str, DeviceReader] = {}
        self._last_held_ns: dict[str, int] = {}
        self._told: PortsPresent | None = None
        self._told_stuck: dict[str, int] = {}

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
                self._keep_to_budget()
                self._tell_present()
            time.sleep(SCOUT_EVERY_SECONDS)

    def watch_closely(self, request: WatchClosely) -> None:
        self._around.closely = request.keys

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
        for device in devices:
            reader = self._readers.get(device)
            if reader is None or self._may_try_again(reader):
                self._around.claims.release(device)
                self._readers[device] = DeviceReader(device, self._around)
                self._lanes.add(self._readers[device])

    def _keep_to_budget(self) -> None:
        costs = {device: reader.commands_per_second for device, reader in self._readers.items()}
        for device, factors in within_budget(costs, COMMANDS_PER_SECOND).items():
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

    def flush(self) -> None:
        with _ending_with_the_agent():
            self._outbox.flush()


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


def serve(link: socket.socket, sampler: Sampler) -> None:
    """Until the agent ends."""
    poll = select.poll()
    poll.register(link, select.POLLIN | select.POLLHUP)
    health_at_ns = 0
    while True:
        if poll.poll(LOOK_EVERY_MS):
            request = receive_request(link)
            if not isinstance(request, WatchClosely):
                return
            sampler.watch_closely(request)
        sampler.look()
        if time.monotonic_ns() >= health_at_ns:
            sampler.tell_health()
            health_at_ns = time.monotonic_ns() + HEALTH_EVERY_NS


if __name__ == "__main__":
    main()
