"""Spec: a scenario of the simulated fabric, as its JSON file says it."""

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from simulators.errors import SimulatorError
from simulators.fabric.counters import NAMES, LinkLayer
from simulators.fabric.schedule import Flap, NotNegative, PortSchedule, Positive, random_flaps

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,63}$")]
Guid = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4}(:[0-9a-f]{4}){3}$")]
Pci = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]
Count = Annotated[int, msgspec.Meta(ge=0)]


class RandomFlaps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Flaps drawn from a seed; see schedule.random_flaps."""

    seed: int
    count: Count
    shortest_seconds: Positive
    longest_seconds: Positive
    begin_seconds: NotNegative
    gap_seconds: Positive

    def __post_init__(self) -> None:
        if self.longest_seconds < self.shortest_seconds:
            raise ValueError("longest_seconds is below shortest_seconds")


class PortSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One device with one port, as mlx5 has them.

    `initial` gives counters their first values: `counters/link_downed`,
    `hw_counters/packet_seq_err`, `net/carrier_down_count`.
    """

    device: Name
    link_layer: LinkLayer
    netdev: Name
    guid: Guid
    pci: Pci
    rate_gbps: Literal[100, 200, 400, 800] = 400
    bytes_per_second: Count = 20_000_000_000
    subnet_seconds: NotNegative = 0.0
    flaps: tuple[Flap, ...] | RandomFlaps = ()
    initial: dict[str, Count] = {}

    def __post_init__(self) -> None:
        if self.subnet_seconds and self.link_layer != "InfiniBand":
            raise ValueError("subnet_seconds needs link_layer InfiniBand")
        if int(self.pci[5:7], 16) == 0:
            raise ValueError("pci needs a bus above 00, since a port sits behind a bridge")
        for name in self.initial:
            if name not in NAMES:
                raise ValueError(f"initial names {name!r}, which is no counter of an mlx5 port")
        self.schedule()

    @property
    def name(self) -> str:
        return f"{self.device}/1"

    def schedule(self) -> PortSchedule:
        return PortSchedule(self._flaps(), self.subnet_seconds)

    def _flaps(self) -> tuple[Flap, ...]:
        drawn = self.flaps
        if isinstance(drawn, tuple):
            return drawn
        return random_flaps(
            seed=drawn.seed,
            count=drawn.count,
            shortest_seconds=drawn.shortest_seconds,
            longest_seconds=drawn.longest_seconds,
            begin_seconds=drawn.begin_seconds,
            gap_seconds=drawn.gap_seconds + self.subnet_seconds,
        )


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Reads of the files that match `path` go wrong from `begin_seconds` to `end_seconds`.

    `path` is a glob on the absolute path in the tree, by its /class or its /devices
    name; `*` matches slashes too. A `hang` waits until the end, an `errno` fails with
    `error`. Seconds count from the schedule's origin.
    """

    path: str
    kind: Literal["hang", "errno"]
    begin_seconds: float
    end_seconds: float
    error: str = "EIO"

    def __post_init__(self) -> None:
        if not hasattr(errno, self.error):
            raise ValueError(f"{self.error!r} is no errno name such as EINVAL")
        if self.end_seconds <= self.begin_seconds:
            raise ValueError("end_seconds must lie after begin_seconds")


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node: its ports and what goes wrong with reading them."""

    ports: tuple[PortSpec, ...]
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        for field in ("device", "netdev", "guid", "pci"):
            seen = [getattr(port, field) for port in self.ports]
            if len(set(seen)) < len(seen):
                raise ValueError(f"two ports have the same {field}")


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
