"""Port: a port of the scenario with its timeline, its names at each moment, and its members."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from simulators.fabric.changes import (
    Change,
    Gone,
    Lives,
    NetdevReplaced,
    Renamed,
    absence,
    lives,
)
from simulators.fabric.counters import CARRIER_DOWNS, CARRIER_UPS, Cut, Source
from simulators.fabric.real import RealNetdev
from simulators.fabric.schedule import nanoseconds
from simulators.fabric.spec import Member, PortSpec
from simulators.fabric.timeline import Phase, Timeline, all_down, timeline_of

_ALL_COUNTERS = ("counters/", "hw_counters/", "net/")
# A netdev counts one of each at bring-up, as captured.
_CARRIER_AT_FIRST = {CARRIER_DOWNS: 1, CARRIER_UPS: 1}


@dataclass(frozen=True)
class SimulatedMember:
    """A netdev of a bond."""

    spec: Member
    source: Source
    lives: Lives

    @property
    def timeline(self) -> Timeline:
        return self.source.timeline


@dataclass(frozen=True)
class SimulatedPort:
    spec: PortSpec
    source: Source
    index: int
    """Its place among the node's ports, from 0; LID and ifindex come from it."""
    function: Lives
    """Of the PCI function; lives of software devices have the device's name."""
    device: Lives
    port: Lives
    """Of this port of the device, by the device's name."""
    netdev: Lives
    members: tuple[SimulatedMember, ...] = ()

    @property
    def timeline(self) -> Timeline:
        return self.source.timeline

    @property
    def infiniband(self) -> bool:
        return self.spec.link_layer == "InfiniBand"

    @cached_property
    def real(self) -> RealNetdev | None:
        directory = self.spec.real_netdev
        return None if directory is None else RealNetdev(directory)

    @property
    def phase(self) -> Callable[[int], Phase]:
        return self.timeline.phase if self.real is None else self.real.phase

    def moments_ns(self) -> set[int]:
        """When anything of it comes, goes or gets another name."""
        every = (self.function, self.device, self.port, self.netdev)
        return set().union(*(some.moments_ns() for some in every))


def simulated_port(
    spec: PortSpec, changes: Sequence[Change], index: int, origin_ns: int, begin_ns: int
) -> SimulatedPort:
    """`changes` are those of its device."""
    gone = [c for c in changes if isinstance(c, Gone)]
    of_device = [absence(c, origin_ns) for c in gone if c.number is None]
    of_port = [absence(c, origin_ns) for c in gone if c.number in (None, spec.number)]
    renamed = [
        (origin_ns + nanoseconds(c.at_seconds), c.to) for c in changes if isinstance(c, Renamed)
    ]
    replaced = [
        (origin_ns + nanoseconds(c.at_seconds), c.to)
        for c in changes
        if isinstance(c, NetdevReplaced) and c.number == spec.number
    ]
    restarts = [cut for c in gone if c.number is None for cut in _restart(c, origin_ns)]
    members = tuple(_member(m, of_device, restarts, origin_ns, begin_ns) for m in spec.members)
    source = Source(
        _timeline(spec, members, origin_ns, begin_ns),
        spec.bytes_per_second,
        origin_ns,
        tuple(_cuts(spec, changes, origin_ns)),
        _first_values(spec),
        spec.counters,
    )
    return SimulatedPort(
        spec,
        source,
        index,
        function=lives(spec.pci or spec.device, (), of_device),
        device=lives(spec.device, renamed, of_device),
        port=lives(spec.device, renamed, of_port),
        netdev=lives(spec.netdev or "", replaced, of_device),
        members=members,
    )


def _member(
    spec: Member,
    absent: Sequence[tuple[int, int]],
    restarts: Sequence[Cut],
    origin_ns: int,
    begin_ns: int,
) -> SimulatedMember:
    timeline = timeline_of(spec.schedule(), spec.rate, origin_ns, begin_ns)
    initial = {**_CARRIER_AT_FIRST, **spec.initial}
    source = Source(timeline, 0, origin_ns, tuple(restarts), initial, spec.counters)
    return SimulatedMember(spec, source, lives(spec.netdev, (), absent))


def _timeline(
    spec: PortSpec, members: Sequence[SimulatedMember], origin_ns: int, begin_ns: int
) -> Timeline:
    if not members:
        return timeline_of(spec.schedule(), spec.rate, origin_ns, begin_ns)
    return Timeline(all_down([m.timeline for m in members]), spec.rate, begin_ns)


def _first_values(spec: PortSpec) -> dict[str, int]:
    return dict(spec.initial) if spec.never_up else {**_CARRIER_AT_FIRST, **spec.initial}


def _cuts(spec: PortSpec, changes: Sequence[Change], origin_ns: int) -> Iterator[Cut]:
    for reset in spec.resets:
        at_ns = origin_ns + nanoseconds(reset.at_seconds)
        yield Cut(at_ns, ("counters/",), only_errors=reset.which == "errors")
    for change in changes:
        if isinstance(change, NetdevReplaced) and change.number == spec.number:
            yield Cut(origin_ns + nanoseconds(change.at_seconds), ("net/",))
        if isinstance(change, Gone) and change.number in (None, spec.number):
            yield from _restart(change, origin_ns)


def _restart(gone: Gone, origin_ns: int) -> Iterator[Cut]:
    if gone.restarted and gone.end_seconds is not None:
        yield Cut(origin_ns + nanoseconds(gone.end_seconds), _ALL_COUNTERS)
