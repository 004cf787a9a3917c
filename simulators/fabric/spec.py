"""Spec: a scenario of the simulated fabric, as its JSON file says it."""

import errno
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from simulators.errors import SimulatorError
from simulators.fabric.changes import Change, NetdevReplaced, Renamed
from simulators.fabric.counters import CARRIER_RULES, Count, Oddity, Reset
from simulators.fabric.drivers import DRIVERS, Driver, DriverName, LinkLayer
from simulators.fabric.names import Guid, Name, Pci
from simulators.fabric.rates import Rate
from simulators.fabric.schedule import (
    Flap,
    Kind,
    NotNegative,
    PortSchedule,
    Positive,
    Span,
    random_flaps,
)

_FOREVER_SECONDS = 1e6
_NO_GUID = "0000:0000:0000:0000"


class RandomFlaps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Flaps drawn from a seed; see schedule.random_flaps."""

    seed: int
    count: Count
    shortest_seconds: Positive
    longest_seconds: Positive
    begin_seconds: NotNegative
    gap_seconds: Positive
    kinds: tuple[Kind, ...] = ("physical",)

    def __post_init__(self) -> None:
        if self.longest_seconds < self.shortest_seconds:
            raise ValueError("longest_seconds is below shortest_seconds")
        if not self.kinds:
            raise ValueError("kinds names no kind of flap")

    def drawn(self, more_gap_seconds: float = 0.0) -> tuple[Flap, ...]:
        return random_flaps(
            seed=self.seed,
            count=self.count,
            shortest_seconds=self.shortest_seconds,
            longest_seconds=self.longest_seconds,
            begin_seconds=self.begin_seconds,
            gap_seconds=self.gap_seconds + more_gap_seconds,
            kinds=self.kinds,
        )


Flaps = tuple[Flap, ...] | RandomFlaps


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A netdev of a bond, on a PCI function of its own, with a link of its own."""

    netdev: Name
    pci: Pci
    rate_gbps: Positive = 400
    lanes: int = 4
    flaps: Flaps = ()
    initial: dict[str, Count] = {}
    counters: dict[str, Oddity] = {}

    def __post_init__(self) -> None:
        _refuse_logical(self.schedule(), "a member of a bond")
        _refuse_unknown((*self.initial, *self.counters), CARRIER_RULES, "a member of a bond")

    @property
    def rate(self) -> Rate:
        return Rate(self.rate_gbps, self.lanes)

    def schedule(self) -> PortSchedule:
        return PortSchedule(_drawn(self.flaps, 0.0))


class PortSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """One RDMA port; ports of one device have its name, GUID and PCI function in common.

    Counters are named by their place: `counters/link_downed`, `hw_counters/packet_seq_err`,
    `net/carrier_down_count`. `initial` gives them first values, `counters` oddities.
    """

    device: Name
    number: Annotated[int, msgspec.Meta(ge=1, le=254)] = 1
    driver: DriverName = "mlx5"
    link_layer: LinkLayer
    netdev: Name | None = None
    guid: Guid
    pci: Pci | None = None
    rate_gbps: Positive = 400
    lanes: int = 4
    bytes_per_second: Count = 20_000_000_000
    subnet_seconds: NotNegative = 0.0
    flaps: Flaps = ()
    never_up: bool = False
    traffic_off: tuple[Span, ...] = ()
    initial: dict[str, Count] = {}
    counters: dict[str, Oddity] = {}
    resets: tuple[Reset, ...] = ()
    without: tuple[str, ...] = ()
    """Globs of files below the port's directory that it does not have: `counters/*`."""
    members: tuple[Member, ...] = ()
    """The netdev is a bond of these; the port is up while one of them is."""
    vf_of: Pci | None = None
    """It is a virtual function of this one."""
    state_is_constant: bool = False
    """Its state never changes, as that of a VF whose administrator set it to up."""
    nvlink_management: bool = False
    """It manages NVLink switches: its VPD says so, its error registers refuse each read."""
    real_netdev: str | None = None
    """Directory of a real netdev, /sys/class/net/NAME: its files are the simulated netdev's,
    and its carrier is the port's."""

    def __post_init__(self) -> None:
        self._refuse_wrong_device()
        self._refuse_wrong_schedule()
        known = {**self.shape.rules(self.link_layer), **CARRIER_RULES}
        _refuse_unknown((*self.initial, *self.counters), known, f"a port of {self.driver}")

    @property
    def name(self) -> str:
        return f"{self.device}/{self.number}"

    @property
    def shape(self) -> Driver:
        return DRIVERS[self.driver]

    @property
    def rate(self) -> Rate:
        return Rate(self.rate_gbps, self.lanes)

    def schedule(self) -> PortSchedule:
        flaps = _drawn(self.flaps, self.subnet_seconds)
        return PortSchedule(flaps, self.subnet_seconds, self.never_up, self.traffic_off)

    def _refuse_wrong_device(self) -> None:
        if self.link_layer not in self.shape.counters:
            right = " or ".join(self.shape.counters)
            raise ValueError(f"link_layer of a port of {self.driver} is {right}")
        if (self.pci is None) != (self.shape.kernel is None):
            needs = "has no" if self.shape.kernel is None else "needs a"
            raise ValueError(f"a device of {self.driver} {needs} pci function")
        if self.pci is not None and int(self.pci[5:7], 16) == 0:
            raise ValueError("pci needs a bus above 00, since a port sits behind a bridge")
        if self.vf_of is not None and self.pci is None:
            raise ValueError("vf_of needs a pci function")

    def _refuse_wrong_schedule(self) -> None:
        schedule, _ = self.schedule(), self.rate
        if self.link_layer != "InfiniBand":
            if self.subnet_seconds:
                raise ValueError("subnet_seconds needs link_layer InfiniBand")
            _refuse_logical(schedule, f"a port of link_layer {self.link_layer}")
        has_own_link = bool(self.flaps) or self.never_up
        if self.real_netdev is not None and (has_own_link or self.members or not self.netdev):
            raise ValueError("real_netdev needs netdev, and its carrier is real: no flaps, members")
        if self.members:
            self._refuse_wrong_bond(has_own_link)

    def _refuse_wrong_bond(self, has_own_link: bool) -> None:
        if self.link_layer != "Ethernet" or self.netdev is None:
            raise ValueError("members needs link_layer Ethernet and a netdev, the bond")
        if self.members[0].pci != self.pci:
            raise ValueError("the first of members is on the port's own pci function")
        if has_own_link:
            raise ValueError("a bond has no flaps of its own, its members have")


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Reads of the files that match `path` go wrong from `begin_seconds` to `end_seconds`.

    `path` is a glob on the absolute path in the tree, by its /class or its /devices
    name; `*` matches slashes too. A `hang` waits until the end, an `errno` fails with
    `error`, a `slow` one takes `delay_seconds` each, a `text` shows `text` instead.
    Seconds count from the schedule's origin.
    """

    path: str
    kind: Literal["hang", "errno", "slow", "text"]
    begin_seconds: float = -_FOREVER_SECONDS
    end_seconds: float = _FOREVER_SECONDS
    error: str = "EIO"
    delay_seconds: Positive = 0.05
    text: str = "N/A (no PMA)\n"

    def __post_init__(self) -> None:
        if not hasattr(errno, self.error):
            raise ValueError(f"{self.error!r} is no errno name such as EINVAL")
        if self.end_seconds <= self.begin_seconds:
            raise ValueError("end_seconds must lie after begin_seconds")


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A node: its ports, what goes wrong with reading them, what comes and goes."""

    ports: tuple[PortSpec, ...]
    faults: tuple[Fault, ...] = ()
    changes: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        _refuse_twice("name", [port.name for port in self.ports])
        _refuse_twice("netdev", list(self._netdevs()))
        for first, second in pairwise(sorted(self.ports, key=lambda port: port.name)):
            of_device = [(p.guid, p.pci, p.driver) for p in (first, second)]
            if first.device == second.device and len(set(of_device)) > 1:
                raise ValueError(f"ports of {first.device} differ in guid, pci or driver")
        devices = {port.device: port for port in self.ports}.values()
        _refuse_twice("guid", [port.guid for port in devices if port.guid != _NO_GUID])
        _refuse_twice("pci", [port.pci for port in devices if port.pci is not None])
        self._refuse_unknown_functions()
        for change in self.changes:
            self._refuse_unknown_subject(change)

    def _netdevs(self) -> Iterator[str]:
        for port in self.ports:
            yield from (member.netdev for member in port.members)
            if port.netdev is not None:
                yield port.netdev

    def _refuse_unknown_functions(self) -> None:
        functions = {port.pci for port in self.ports}
        for port in self.ports:
            if port.vf_of is not None and port.vf_of not in functions:
                raise ValueError(f"vf_of of {port.name} names no port's pci function")

    def _refuse_unknown_subject(self, change: Change) -> None:
        number = None if isinstance(change, Renamed) else change.number
        meant = [p for p in self.ports if p.device == change.device and number in (None, p.number)]
        if not meant:
            raise ValueError(f"changes name {change.device!r}, which is no such port")
        if isinstance(change, NetdevReplaced) and (meant[0].netdev is None or meant[0].members):
            raise ValueError(f"{meant[0].name} has no netdev that could be replaced")


def read_spec(path: Path) -> Spec:
    """The scenario in a file; SimulatorError names what is wrong with it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Spec)
    except OSError as error:
        raise SimulatorError(f"scenario {path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise SimulatorError(f"scenario {path} is not right: {error}") from error


def two_ports(flaps_a: Sequence[Flap] = (), flaps_b: Sequence[Flap] = ()) -> Spec:
    """An InfiniBand port mlx5_0/1 with ib0 and a RoCE port mlx5_1/1 with eth2."""
    a = PortSpec(
        device="mlx5_0",
        link_layer="InfiniBand",
        netdev="ib0",
        guid="b83f:d203:0012:3450",
        pci="0000:3b:00.0",
        flaps=tuple(flaps_a),
    )
    b = PortSpec(
        device="mlx5_1",
        link_layer="Ethernet",
        netdev="eth2",
        guid="b83f:d203:0012:3451",
        pci="0000:5e:00.0",
        flaps=tuple(flaps_b),
    )
    return Spec((a, b))


def _drawn(flaps: Flaps, more_gap_seconds: float) -> tuple[Flap, ...]:
    return flaps.drawn(more_gap_seconds) if isinstance(flaps, RandomFlaps) else flaps


def _refuse_logical(schedule: PortSchedule, who: str) -> None:
    if any(flap.kind == "logical" for flap in schedule.flaps):
        raise ValueError(f"{who} has no subnet manager, hence no flap of kind logical")


def _refuse_unknown(names: Iterable[str], known: Container[str], who: str) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is no counter of {who}")


def _refuse_twice(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"two ports have the same {what}")
