"""Scenarios: nodes that tests and people often want."""

import math
import random
from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from simulators.fabric.counters import Oddity, Reset
from simulators.fabric.drivers import DRIVER_NAMES, DRIVERS, DriverName, LinkLayer
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import Fault, Member, PortSpec, Spec, two_ports

_MICROSECONDS = 1e6
_FIRST_BUS = 0x19
_GUID = "b83f:d203:0012:{:04x}"
_LINK_DOWNED = "counters/link_downed"


def eight_ports(seed: int) -> Spec:
    """Four InfiniBand and four RoCE ports that flap at random for 20 s, 4 ms to 2.4 s each.

    Between two flaps of a port are 0.3 s or more; mlx5_3 begins with 253 downs counted,
    so that its counter stops at 255.
    """
    ports = []
    for index in range(8):
        layer: LinkLayer = "InfiniBand" if index < 4 else "Ethernet"
        flaps = tuple(_flaps(random.Random(f"{seed} {index}")))
        initial = {_LINK_DOWNED: 253} if index == 3 else {}
        ports.append(replace(_mlx5(index, layer, flaps=flaps), initial=initial))
    return Spec(tuple(ports))


def _flaps(rng: random.Random) -> Iterator[Flap]:
    """As many of one length as of ten times that length, until 20 s are full."""
    shortest, longest, gap, end = 0.004, 2.4, 0.3, 20.0
    start = rng.uniform(0, gap)
    while True:
        down = math.exp(rng.uniform(math.log(shortest), math.log(longest)))
        if start + down > end:
            return
        yield Flap(_rounded(start), _rounded(max(shortest, down)))
        start += down + gap + rng.uniform(0.001, 3 * gap)


def _rounded(seconds: float) -> float:
    return round(seconds * _MICROSECONDS) / _MICROSECONDS


def bad_node() -> Spec:
    """Eight InfiniBand ports, on each of which something else is wrong for 12 s.

    mlx5_0 hangs 6 s, mlx5_1 gives EIO 4 s, mlx5_2 refuses one counter, mlx5_3 answers
    in words, mlx5_4 is reset by somebody, mlx5_5 was never up, mlx5_6 has no counters/,
    mlx5_7 goes down and never counts it. Each but mlx5_5 goes down at 2.5 s and at 9 s.
    """
    flaps = (Flap(2.5, 0.4), Flap(9.0, 0.8))
    ports = [_mlx5(index, "InfiniBand", flaps=flaps) for index in range(8)]
    return Spec(
        ports=(
            *ports[:4],
            replace(ports[4], initial={_LINK_DOWNED: 7}, resets=(Reset(6.0),)),
            replace(ports[5], flaps=(), never_up=True),
            replace(ports[6], without=("counters/*",)),
            replace(ports[7], counters={_LINK_DOWNED: Oddity(moves=False)}),
        ),
        faults=(
            Fault("/class/infiniband/mlx5_0/*", "hang", 1.0, 7.0),
            Fault("/class/infiniband/mlx5_1/ports/1/*", "errno", 2.0, 6.0, "EIO"),
            Fault("*/mlx5_2/ports/1/counters/symbol_error", "errno", error="EINVAL"),
            Fault("*/mlx5_3/ports/1/counters/*", "text"),
        ),
    )


def all_drivers() -> Spec:
    """A device of each driver and shape, each port down once: from 2 s on, for a second."""
    flaps = (Flap(2.0, 1.0),)
    ports = [
        _mlx5(0, "InfiniBand", flaps=flaps),
        _mlx5(1, "Ethernet", flaps=flaps),
        replace(_mlx5(2, "InfiniBand"), netdev=None, nvlink_management=True),
        _virtual_function(flaps),
        _bond(),
        *(_mlx4(number, flaps) for number in (1, 2)),
    ]
    others = (name for name in DRIVER_NAMES if not name.startswith("mlx"))
    ports += [_of_driver(driver, index, flaps) for index, driver in enumerate(others, 6)]
    return Spec(tuple(ports))


SCENARIOS: Mapping[str, Callable[[], Spec]] = {
    "two_ports": lambda: two_ports((Flap(2.0, 0.5),), (Flap(4.0, 0.05), Flap(6.0, 1.5))),
    "eight_ports": lambda: eight_ports(1),
    "bad_node": bad_node,
    "all_drivers": all_drivers,
}


def _mlx5(
    index: int,
    link_layer: LinkLayer,
    *,
    flaps: tuple[Flap, ...] = (),
) -> PortSpec:
    """A port on a bus of its own, to be changed where it shall be another."""
    return PortSpec(
        device=f"mlx5_{index}",
        link_layer=link_layer,
        netdev=f"ib{index}" if link_layer == "InfiniBand" else f"eth{index}",
        guid=_GUID.format(index),
        pci=_pci(index),
        flaps=flaps,
    )


def _pci(index: int, function: int = 0) -> str:
    return f"0000:{_FIRST_BUS + 8 * index:02x}:00.{function}"


def _virtual_function(flaps: tuple[Flap, ...]) -> PortSpec:
    port = _mlx5(3, "Ethernet", flaps=flaps)
    return replace(port, pci=_pci(1, function=2), vf_of=_pci(1))


def _bond() -> PortSpec:
    """Both members go down by themselves, and for half a second together."""
    members = (
        Member("eth40", _pci(4), flaps=(Flap(2.0, 1.0),)),
        Member("eth41", _pci(4, function=1), flaps=(Flap(2.5, 1.0),)),
    )
    return replace(_mlx5(4, "Ethernet"), device="mlx5_bond_0", netdev="bond0", members=members)


def _mlx4(number: int, flaps: tuple[Flap, ...]) -> PortSpec:
    """One device with an InfiniBand and an Ethernet port."""
    return replace(
        _mlx5(5, "InfiniBand" if number == 1 else "Ethernet", flaps=flaps),
        device="mlx4_0",
        driver="mlx4",
        number=number,
        netdev=f"net{number}",
        rate_gbps=40,
    )


def _of_driver(driver: DriverName, index: int, flaps: tuple[Flap, ...]) -> PortSpec:
    shape = DRIVERS[driver]
    (layer,) = shape.counters
    return PortSpec(
        device=f"{driver}_0",
        driver=driver,
        link_layer=layer,
        netdev=f"{driver}net",
        guid=_GUID.format(index),
        pci=_pci(index) if shape.kernel else None,
        rate_gbps=100,
        flaps=flaps,
    )
