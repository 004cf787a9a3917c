"""Truth: what really happened to each port, for whoever checks what was found."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from simulators.errors import SimulatorError
from simulators.fabric.port import SimulatedPort

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class TruePort(msgspec.Struct, frozen=True):
    device: str
    number: int
    guid: str
    link_layer: str
    netdev: str


class TrueOutage(msgspec.Struct, frozen=True):
    """Down and usable again: ACTIVE on InfiniBand, carrier on Ethernet."""

    port: str
    down_monotonic_ns: int
    up_monotonic_ns: int
    down_unix_ns: int
    up_unix_ns: int


class Truth(msgspec.Struct, frozen=True):
    """Monotonic times are CLOCK_MONOTONIC of the boot named; outages in order of time."""

    origin_monotonic_ns: int
    origin_unix_ns: int
    boot: str
    ports: tuple[TruePort, ...]
    outages: tuple[TrueOutage, ...]


def truth_of(
    ports: Iterable[SimulatedPort], origin_ns: int, unix_offset_ns: int, boot: str
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
    return TruePort(spec.device, 1, spec.guid, spec.link_layer, spec.netdev)


def _outages(port: SimulatedPort, unix_offset_ns: int) -> Iterator[TrueOutage]:
    for down_ns, up_ns in port.timeline.outages():
        yield TrueOutage(
            port.spec.name, down_ns, up_ns, down_ns + unix_offset_ns, up_ns + unix_offset_ns
        )
