"""DeviceReader: finds the ports of one device and reads each tier of them when it is due.

It has no thread: a lane gives it its turns. All devices share one grid, so that a node
wakes once for all of them, and in a turn does one thing: first all fast sweeps of the
node, then whatever else is due, so that no fast sweep is late for a slow one. What is
done once for all devices finds its code in the caches: that halves what it costs.
"""

import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol, TypeAlias
from zlib import crc32

import msgspec

from flapd.core.fabric.catalogue import Tier
from flapd.core.fabric.parse import value_names
from flapd.model.observation import Observation, PortSeen
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.claims import Claims
from flapd.sources.discovery import Discovery
from flapd.sources.pace import SLOWABLE, Pace, Swept
from flapd.sources.plan import Plan, commands_per_second, plan_of, remembered
from flapd.sources.port_reader import PortReader
from flapd.sources.read_meter import ReadMeter
from flapd.sources.settings import PortsSettings
from flapd.store.ring import RingWriter, ring_path

TIERS: tuple[Tier, ...] = ("fast", "slow", "rare")
DESCRIBE_EVERY_NS = SECOND_NS
RARE_PLACES = 16
FIRST_NS = -1

Task: TypeAlias = Tier | Literal["describe"]


class Tell(Protocol):
    def __call__(self, message: Observation, *, urgent: bool = True) -> bool:
        """Hands an observation on without ever waiting; False where it could not be taken."""


class Surroundings(msgspec.Struct):
    """What all readers of a sampler share."""

    sysfs: Path
    ring: Path
    boot: str
    ports: PortsSettings
    intervals_ns: Mapping[Tier, int]
    keep_ns: int
    claims: Claims
    tell: Tell
    meter: ReadMeter
    was_up: set[str]
    """Ports that were up at some time; the others are only listed."""
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
    """Follows one device until told to stop; used from one thread at a time."""

    def __init__(self, device: str, surroundings: Surroundings) -> None:
        self.device = device
        self.reading_since_ns: int | None = None
        """Start of what is being read now; None between reads."""
        self.has_looked = False
        """Its ports are known."""
        self.is_unreadable = False
        """It could not be said of it which ports it has."""
        self.failed_ns: int | None = None
        """When following it ended by a fault of ours."""
        self.rings_missing = 0
        """Rings of its ports that could not be made."""
        self.commands_per_second: dict[Tier, float] = {}
        """What reading it as configured asks of the firmware."""
        self.budget_factors: dict[Tier, int] = {}
        """How many times longer its intervals must be for the node to keep to its budget."""
        self._around = surroundings
        self._discovery = Discovery(surroundings.sysfs, surroundings.ports)
        self._ports: dict[Port, WatchedPort] = {}
        self._pace = Pace()
        self._swept: list[Swept] = []
        self._failures: Counter[str] = Counter()
        self._place_ns = crc32(device.encode()) % RARE_PLACES * surroundings.intervals_ns["slow"]
        """Behind the grid of rare sweeps: not all devices are asked for everything at once."""
        self._due_ns: dict[Task, int] = {**dict.fromkeys(TIERS, 0), "describe": FIRST_NS}
        self._stopping = False

    def stop(self) -> None:
        """It reads nothing any more after its present read."""
        self._stopping = True

    def close(self) -> None:
        for watched in self._ports.values():
            watched.close()

    @property
    def next_turn_ns(self) -> int:
        return min(self._due_ns.values())

    @property
    def factor(self) -> int:
        """How many times longer than configured its intervals are, that which grew most."""
        return max(self._factor(tier) for tier in SLOWABLE)

    def _factor(self, tier: Tier) -> int:
        if tier not in SLOWABLE:
            return 1
        return max(self._pace.factor, self.budget_factors.get(tier, 1))

    def turn(self) -> None:
        """Does one thing: what has been due for longest, and of things due together the first."""
        task = min(self._due_ns, key=self._due_ns.__getitem__)
        if task == "describe":
            self._describe()
            self._account()
            self._due_ns[task] = _next_on_grid(DESCRIBE_EVERY_NS)
        else:
            self._read(task)

    def _read(self, tier: Tier) -> None:
        interval_ns, due_ns = self._interval_ns(tier), self._due_ns[tier]
        began_ns = time.monotonic_ns()
        self._sweep(tier)
        ended_ns = time.monotonic_ns()
        late_ns = began_ns - due_ns if due_ns and tier == "fast" else None
        self._swept.append(Swept(tier, interval_ns, ended_ns, ended_ns - began_ns, late_ns))
        place_ns = self._place_ns if tier == "rare" else 0
        self._due_ns[tier] = _next_on_grid(interval_ns, place_ns)

    def _account(self) -> None:
        """Not after each sweep: what is done together for many costs half as much."""
        self._around.meter.note(self.device, self._swept, self._failures)
        for swept in self._swept:
            at_present_pace = swept.interval_ns == self._interval_ns(swept.tier)
            if swept.tier in SLOWABLE and at_present_pace:
                self._pace.take(swept)
        self._swept = []
        self._failures.clear()
        self.commands_per_second = self._commands_per_second()

    def _interval_ns(self, tier: Tier) -> int:
        return self._around.intervals_ns[tier] * self._factor(tier)

    def _describe(self) -> None:
        """Looks again which ports there are, and what; what cannot be read stays as known."""
        around = self._around
        self.reading_since_ns = time.monotonic_ns()
        try:
            found = list(self._discovery.ports_of(self.device))
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
                self._due_ns |= dict.fromkeys(TIERS, 0)  # all there is to know of it, at once
        made = sum(len(watched.rings) for watched in self._ports.values())
        self.rings_missing = len(self._ports) * len(TIERS) - made
        self._around.claims.release(self.device, but=frozenset(port.key for port in ports))

    def _watched(self, port: Port) -> WatchedPort:
        plan = plan_of(self._around.sysfs, port)
        rings: dict[Tier, RingWriter] = {}
        for tier in TIERS:
            try:
                rings[tier] = self._ring(port, plan, tier)
            except OSError as error:  # a full or missing tmpfs must not end the watching
                print(f"no ring for {port.name} {tier}: {error}", file=sys.stderr)  # noqa: T201
        reader = PortReader(port, plan, known_up=port.key in self._around.was_up)
        return WatchedPort(reader, rings)

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

    def _commands_per_second(self) -> dict[Tier, float]:
        """Not counting the minute after a link moved: its sharp look is what all this is for."""
        around = self._around
        total: dict[Tier, float] = dict.fromkeys(TIERS, 0.0)
        for port, watched in self._ports.items():
            files = watched.reader.files_at_rest(closely=port.key in around.closely)
            for tier, cost in commands_per_second(port, files, around.intervals_ns).items():
                total[tier] += cost
        return total

    def _sweep(self, tier: Tier) -> None:
        for port, watched in self._ports.items():
            reader = watched.reader
            if not reader.wants(tier):
                continue
            self.reading_since_ns = time.monotonic_ns()
            sweep = reader.sweep(tier, closely=port.key in self._around.closely)
            self.reading_since_ns = None
            if self._stopping:
                return  # perhaps after a long hang: a successor may write the ring by now
            if tier in watched.rings:
                watched.rings[tier].append(
                    sweep.before_ns, sweep.after_ns, sweep.reads, reader.values
                )
            if self._around.tell(reader.sample(sweep), urgent=reader.has_link_news):
                reader.sent()
            if reader.was_up:
                self._around.was_up.add(port.key)
            if reader.failures:
                self._failures.update(reader.failures)
                reader.failures.clear()


def _next_on_grid(interval_ns: int, place_ns: int = 0) -> int:
    return ((time.monotonic_ns() - place_ns) // interval_ns + 1) * interval_ns + place_ns
