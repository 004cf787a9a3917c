"""DeviceReader: finds the ports of one device and reads each tier of them when it is due.

It has no thread: a lane gives it its turns. All devices share one grid, so that a node
wakes once for all of them, and in a turn does one thing: first all fast sweeps of the
node, then whatever else is due, so that no fast sweep is late for a slow one. What is
done once for all devices finds its code in the caches: that halves what it costs.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol, TypeAlias
from zlib import crc32

import msgspec

from flapd.core.fabric.catalogue import Tier, statistics_commands_of
from flapd.model.observation import Observation, PortSeen
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.claims import Claims
from flapd.sources.discovery import Discovery
from flapd.sources.files import reason_of
from flapd.sources.netdev_asker import COUNTING_EVERY_NS, NetdevAsker
from flapd.sources.netlink_port import NetlinkPort
from flapd.sources.pace import SLOWABLE, Pace, Swept
from flapd.sources.plan import TIERS, commands_per_second, plan_of
from flapd.sources.port_reader import PortReader
from flapd.sources.port_rings import PortRings, RingSettings
from flapd.sources.rdma_netlink import RdmaNetlink
from flapd.sources.read_meter import ReadMeter
from flapd.sources.sample_draft import Sweep
from flapd.sources.settings import PortsSettings
from flapd.sources.urgent import Urgent

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
    rings: RingSettings
    ports: PortsSettings
    intervals_ns: Mapping[Tier, int]
    claims: Claims
    tell: Tell
    meter: ReadMeter
    was_up: set[str]
    """Ports that were up at some time; the others are only listed."""
    no_netlink: str | None = None
    """Why RDMA netlink is not used; None = it is, where it works."""
    asker: NetdevAsker | None = None
    """Of what netdevs tell besides sysfs; None = they are not asked."""
    closely: frozenset[str] = frozenset()
    """Ports whose state is read on every fast sweep."""
    open_netlink: Callable[[], RdmaNetlink] = RdmaNetlink


class WatchedPort(msgspec.Struct, frozen=True):
    """A port, and where its samples are remembered."""

    reader: PortReader
    rings: PortRings
    netlink: NetlinkPort | None = None

    def close(self) -> None:
        self.reader.close()
        self.rings.close()


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
        self.ports: tuple[Port, ...] = ()
        self.urgent = Urgent()
        """Ports that something happened to, it seems."""
        self._around = surroundings
        self._netlink: RdmaNetlink | None = None
        self._no_netlink = surroundings.no_netlink
        self._noted: dict[str, tuple[int, bool, bool]] = {}
        """What the asker was last told of each port."""
        self._discovery = Discovery(surroundings.sysfs, surroundings.ports)
        self._ports: dict[Port, WatchedPort] = {}
        self._pace = Pace()
        self._swept: list[Swept] = []
        self._failures: Counter[str] = Counter()
        self._place_ns = crc32(device.encode()) % RARE_PLACES * surroundings.intervals_ns["slow"]
        """Behind the grid of rare sweeps: not all devices are asked for everything at once."""
        self._due_ns: dict[Task, int] = {**dict.fromkeys(TIERS, 0), "describe": FIRST_NS}
        self._first_due_ns = FIRST_NS
        """Of its tasks: lanes ask all their readers again and again."""
        self._stopping = False

    def stop(self) -> None:
        """It reads nothing any more after its present read."""
        self._stopping = True

    def close(self) -> None:
        for watched in self._ports.values():
            watched.close()
        if self._netlink is not None:
            self._netlink.close()

    def hurry(self, concerns: Callable[[Port], bool]) -> bool:
        """Has its ports that something is about read in its next turn; from any thread."""
        keys = [port.key for port in self.ports if concerns(port)]
        self.urgent.add(keys)
        return bool(keys)

    def look_again(self) -> None:
        """Has it described in its next turn; from any thread."""
        self._due_ns["describe"] = self._first_due_ns = FIRST_NS

    @property
    def next_turn_ns(self) -> int:
        return min(self.urgent.due_ns, self._first_due_ns)

    @property
    def netlink_source(self) -> str:
        """What RDMA netlink does not tell of its ports, and why; "on" where it tells all."""
        if self._no_netlink is not None:
            return self._no_netlink
        told = [watched.netlink for watched in list(self._ports.values()) if watched.netlink]
        if not told:
            return "it has no port with a GUID by which netlink could tell it from another"
        refused = {
            f"{what}: {why}" for netlink in told for what, why in dict(netlink.refused).items()
        }
        return ", ".join(sorted(refused)) or "on"

    @property
    def why_no_product_data(self) -> str | None:
        """None where it is known what kind of function the device is."""
        return self._discovery.unknown.get(self.device)

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
        if self.urgent.due_ns <= self._due_ns[task]:
            self._read_at_once(self.urgent.take())
        elif task == "describe":
            self._due_ns[task] = _next_on_grid(DESCRIBE_EVERY_NS)
            self._describe()
            self._account()
        else:
            self._read(task)
        self._first_due_ns = min(self._due_ns.values())

    def _read(self, tier: Tier) -> None:
        interval_ns, due_ns = self._interval_ns(tier), self._due_ns[tier]
        began_ns = time.monotonic_ns()
        self._sweep(tier)
        ended_ns = time.monotonic_ns()
        late_ns = began_ns - due_ns if due_ns and tier == "fast" else None
        self._swept.append(Swept(tier, interval_ns, ended_ns, ended_ns - began_ns, late_ns))
        place_ns = self._place_ns if tier == "rare" else 0
        self._due_ns[tier] = _next_on_grid(interval_ns, place_ns)

    def _read_at_once(self, keys: frozenset[str]) -> None:
        """The witness, and the state where that can say more."""
        for port, watched in self._ports.items():
            if port.key in keys and not self._stopping:
                self._sweep_port(watched, "fast", closely=watched.reader.state_tier != "rare")

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
            self._noted.pop(port.key, None)
        for port in ports:
            if port not in self._ports and self._around.tell(PortSeen(port, time.monotonic_ns())):
                self._ports[port] = self._watched(port)
                self._due_ns |= dict.fromkeys(TIERS, 0)  # all there is to know of it, at once
        self.rings_missing = sum(watched.rings.missing for watched in self._ports.values())
        self._around.claims.release(self.device, but=frozenset(port.key for port in ports))
        self.ports = tuple(self._ports)
        if self._around.asker is not None:
            known_up = {port.key: port for port, each in self._ports.items() if each.reader.was_up}
            self._around.asker.follow(self.device, known_up)

    def _watched(self, port: Port) -> WatchedPort:
        plan = plan_of(self._around.sysfs, port)
        known_up = port.key in self._around.was_up
        netlink = self._netlink_of(port)
        reader = PortReader(port, plan, known_up=known_up, netlink=netlink)
        return WatchedPort(reader, PortRings(self._around.rings, port, plan), netlink)

    def _netlink_of(self, port: Port) -> NetlinkPort | None:
        """A socket for each device: a question to one that hangs holds up no other."""
        around = self._around
        if around.no_netlink is not None or port.guid is None or port.member is not None:
            return None
        try:
            self._netlink = self._netlink or around.open_netlink()
        except OSError as error:
            self._no_netlink = f"the kernel does not answer: {reason_of(error)}"
            return None
        self._no_netlink = None
        return NetlinkPort(self._netlink, port.device, port.guid, port.number)

    def _commands_per_second(self) -> dict[Tier, float]:
        """Not counting the minute after a link moved: its sharp look is what all this is for."""
        around = self._around
        total: dict[Tier, float] = dict.fromkeys(TIERS, 0.0)
        for port, watched in self._ports.items():
            reader = watched.reader
            files = reader.files_at_rest(closely=port.key in around.closely)
            costs = commands_per_second(
                port, files, around.intervals_ns, at_once=reader.counters_by_netlink
            )
            for tier, cost in costs.items():
                total[tier] += cost
            if around.asker is not None and around.asker.source_of(port) == "on":
                every_ns = COUNTING_EVERY_NS if reader.is_saturated else around.intervals_ns["rare"]
                commands = statistics_commands_of(port.driver, port.link_layer)
                total["rare"] += commands * SECOND_NS / every_ns
        return total

    def _sweep(self, tier: Tier) -> None:
        for port, watched in self._ports.items():
            if self._stopping:
                return
            closely = port.key in self._around.closely
            if tier == "fast" and not closely and self._glance(watched.reader):
                continue
            if watched.reader.wants(tier):
                self._sweep_port(watched, tier, closely=closely)

    def _glance(self, reader: PortReader) -> bool:
        self.reading_since_ns = time.monotonic_ns()
        was_enough = reader.glance()
        self.reading_since_ns = None
        return was_enough

    def _sweep_port(self, watched: WatchedPort, tier: Tier, *, closely: bool) -> None:
        reader, around = watched.reader, self._around
        key = reader.port.key
        for glanced in reader.glanced():
            self._hand_on(watched, "fast", glanced, urgent=False)
        if around.asker is not None and (told := around.asker.take_statistics(key)) is not None:
            reader.take_statistics(told)
        self.reading_since_ns = time.monotonic_ns()
        sweep = reader.sweep(tier, closely=closely)
        self.reading_since_ns = None
        if self._stopping:
            return
        self._hand_on(watched, tier, sweep, urgent=reader.has_link_news or tier == "slow")
        if reader.was_up:
            around.was_up.add(key)
        if reader.failures:
            self._failures.update(reader.failures)
            reader.failures.clear()
        self._note(reader)

    def _hand_on(self, watched: WatchedPort, tier: Tier, sweep: Sweep, *, urgent: bool) -> None:
        if self._stopping:  # perhaps after a long hang: a successor may write the ring by now
            return
        watched.rings.remember(tier, sweep, watched.reader.values)
        if self._around.tell(watched.reader.sample(sweep), urgent=urgent):
            watched.reader.sent()

    def _note(self, reader: PortReader) -> None:
        """Has it asked why a link is down, when it goes down."""
        asker, key = self._around.asker, reader.port.key
        if asker is None:
            return
        now = reader.moves, reader.is_down, reader.is_saturated
        if now == self._noted.get(key, (0, False, False)):
            return
        if asker.note(key, is_down=reader.is_down, is_counted_by=reader.is_saturated):
            self._noted[key] = now


def _next_on_grid(interval_ns: int, place_ns: int = 0) -> int:
    return ((time.monotonic_ns() - place_ns) // interval_ns + 1) * interval_ns + place_ns
