"""Truth: what really happens to each port, for whoever checks what was found.

Monotonic times are CLOCK_MONOTONIC in nanoseconds, of the boot that is named.
"""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from simulators.errors import SimulatorError
from simulators.fabric.changes import ALWAYS_NS, Change, Gone, absence
from simulators.fabric.counters import CARRIER_RULES, Rule, Source
from simulators.fabric.node import FOREVER_NS
from simulators.fabric.port import SimulatedPort
from simulators.fabric.schedule import Kind, nanoseconds
from simulators.fabric.spec import Fault, Spec
from simulators.fabric.timeline import Timeline

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_KINDS: tuple[Kind, ...] = ("physical", "logical", "admin")


class Counted(NamedTuple):
    """A counter before anything of the schedule, and after all of it."""

    first: int
    last: int


class TruePort(msgspec.Struct, frozen=True):
    """A port as the scenario names it, and how often it goes down by kind of outage."""

    device: str
    number: int
    guid: str
    link_layer: str
    netdev: str | None
    driver: str
    pci: str | None
    never_up: bool
    real_netdev: str | None
    """What happens to its link is not in the schedule: it happens to this netdev."""
    downs: dict[str, int]
    members: dict[str, dict[str, int]]
    """The same by netdev, of a bond's members."""
    counts: dict[str, Counted]
    """Every counter that the schedule moves, but for traffic."""


class TrueOutage(msgspec.Struct, frozen=True):
    """Down and usable again: ACTIVE on InfiniBand, carrier on Ethernet."""

    port: str
    """By the name it has when it goes down."""
    down_monotonic_ns: int
    up_monotonic_ns: int
    down_unix_ns: int
    up_unix_ns: int
    kind: Kind
    link_up_monotonic_ns: int
    """The link is there again; before ACTIVE where that waits for the subnet manager."""
    counted: bool
    """The hardware's counters notice it."""
    hidden: bool
    """The device is not there when it goes down: nobody can see it in the state."""
    member: str | None = None
    """Of a bond: the netdev that goes down; None: the port itself does."""
    rate_after: str | None = None


class TrueFault(msgspec.Struct, frozen=True):
    """Reads go wrong: a fault of the scenario."""

    path: str
    kind: str
    begin_monotonic_ns: int
    end_monotonic_ns: int


class TrueChange(msgspec.Struct, frozen=True):
    """A change of the scenario; null: since ever, or for ever, or no other name."""

    device: str
    kind: str
    begin_monotonic_ns: int | None
    end_monotonic_ns: int | None
    to: str | None
    number: int | None


class TrueReset(msgspec.Struct, frozen=True):
    """Somebody sets a port's counters to 0."""

    port: str
    which: str
    at_monotonic_ns: int


class Truth(msgspec.Struct, frozen=True):
    """Outages in order of time."""

    origin_monotonic_ns: int
    origin_unix_ns: int
    boot: str
    ports: tuple[TruePort, ...] = ()
    outages: tuple[TrueOutage, ...] = ()
    faults: tuple[TrueFault, ...] = ()
    changes: tuple[TrueChange, ...] = ()
    resets: tuple[TrueReset, ...] = ()


def truth_of(
    spec: Spec, ports: Iterable[SimulatedPort], origin_ns: int, unix_offset_ns: int, boot: str
) -> Truth:
    """`unix_offset_ns` is unix time minus monotonic time."""
    ports = tuple(ports)
    outages = [outage for port in ports for outage in _outages(port, unix_offset_ns)]
    return Truth(
        origin_ns,
        origin_ns + unix_offset_ns,
        boot,
        tuple(map(_port, ports)),
        tuple(sorted(outages, key=lambda outage: (outage.down_monotonic_ns, outage.port))),
        tuple(_fault(fault, origin_ns) for fault in spec.faults),
        tuple(_change(change, origin_ns) for change in spec.changes),
        tuple(reset for port in ports for reset in _resets(port, origin_ns)),
    )


def boot_id() -> str:
    return _BOOT_ID.read_text().strip()


def write_truth(truth: Truth, path: Path) -> None:
    """By rename, so that who finds the file finds it whole."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(truth)))
        draft.replace(path)
    except OSError as error:
        raise SimulatorError(f"truth {path} cannot be written: {error.strerror}") from error


def _port(port: SimulatedPort) -> TruePort:
    spec = port.spec
    rules = spec.shape.rules(spec.link_layer)
    return TruePort(
        spec.device,
        spec.number,
        spec.guid,
        spec.link_layer,
        spec.netdev,
        spec.driver,
        spec.pci,
        spec.never_up,
        spec.real_netdev,
        _downs(port.timeline),
        {member.spec.netdev: _downs(member.timeline) for member in port.members},
        _counts(port.source, {**rules, **(CARRIER_RULES if spec.netdev else {})}),
    )


def _downs(timeline: Timeline) -> dict[str, int]:
    tally = Tally(down.kind for down in timeline.outages)
    return {kind: tally[kind] for kind in _KINDS}


def _counts(source: Source, rules: dict[str, Rule]) -> dict[str, Counted]:
    counts = {}
    for name, rule in rules.items():
        if rule.bytes_per_step == 0:
            counter = source.counter(name, rule)
            first, last = counter.value(ALWAYS_NS), counter.value(FOREVER_NS)
            if first != last or counter.ever_falls:
                counts[name] = Counted(first, last)
    return counts


def _outages(port: SimulatedPort, unix_offset_ns: int) -> Iterator[TrueOutage]:
    timelines = {None: port.timeline} | {m.spec.netdev: m.timeline for m in port.members}
    for member, timeline in timelines.items():
        for down in timeline.outages:
            life = port.port.at(down.begin_ns)
            yield TrueOutage(
                port=f"{life.name if life else port.spec.device}/{port.spec.number}",
                down_monotonic_ns=down.begin_ns,
                up_monotonic_ns=down.active_ns,
                down_unix_ns=down.begin_ns + unix_offset_ns,
                up_unix_ns=down.active_ns + unix_offset_ns,
                kind=down.kind,
                link_up_monotonic_ns=down.link_ns,
                counted=down.counted,
                hidden=life is None,
                member=member,
                rate_after=down.rate_after.line if down.rate_after else None,
            )


def _fault(fault: Fault, origin_ns: int) -> TrueFault:
    begin_ns, end_ns = map(nanoseconds, (fault.begin_seconds, fault.end_seconds))
    return TrueFault(fault.path, fault.kind, origin_ns + begin_ns, origin_ns + end_ns)


def _change(change: Change, origin_ns: int) -> TrueChange:
    if isinstance(change, Gone):
        begin_ns, end_ns = absence(change, origin_ns)
        return TrueChange(
            change.device,
            "gone",
            None if change.begin_seconds is None else begin_ns,
            None if change.end_seconds is None else end_ns,
            None,
            change.number,
        )
    at_ns = origin_ns + nanoseconds(change.at_seconds)
    kind = str(change.__struct_config__.tag)
    return TrueChange(change.device, kind, at_ns, None, change.to, getattr(change, "number", None))


def _resets(port: SimulatedPort, origin_ns: int) -> Iterator[TrueReset]:
    for reset in port.spec.resets:
        at_ns = origin_ns + nanoseconds(reset.at_seconds)
        yield TrueReset(port.spec.name, reset.which, at_ns)
