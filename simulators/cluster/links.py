"""Links: the downs of all ports of a fleet, whatever brought them about."""

import random
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from simulators.cluster.names import behind, id_of, port_key
from simulators.cluster.spec import Flap, FleetSpec, Maintenance, SwitchDown


class Down(NamedTuple):
    """A port is down from `begin` to `end`, seconds from the origin."""

    id: str
    happening: int
    """Number of the one that brought it about, in the spec."""
    node: int
    port: int
    begin: float
    end: float
    switch: str | None
    """That died; None: it is the link's own."""
    is_planned: bool


def downs_of(spec: FleetSpec) -> list[Down]:
    """In order of time."""
    found = [
        down._replace(happening=number)
        for number, one in enumerate(spec.happenings)
        for down in _downs(spec, one)
    ]
    return sorted(found, key=lambda down: (down.begin, down.node, down.port))


def _downs(spec: FleetSpec, happening: object) -> Iterator[Down]:
    if isinstance(happening, Flap):
        end = happening.at_seconds + happening.down_seconds + happening.usable_after_seconds
        yield _down(spec, happening.node, happening.port, happening.at_seconds, end)
    if isinstance(happening, SwitchDown):
        yield from _behind(spec, happening)


def _behind(spec: FleetSpec, one: SwitchDown) -> Iterator[Down]:
    rng = random.Random(f"{spec.seed} {one.switch} {one.at_seconds}")
    for node, port in behind(spec, one.switch):
        begin = one.at_seconds + rng.uniform(0.0, one.within_seconds)
        end = begin + one.down_seconds + rng.uniform(0.0, one.within_seconds)
        yield _down(spec, node, port, begin, end)._replace(switch=one.switch)


def _down(spec: FleetSpec, node: int, port: int, begin: float, end: float) -> Down:
    planned = any(_covers(one, node, port, begin) for one in _plans(spec))
    name = id_of("flap", spec.seed, port_key(node, port), f"{begin:.6f}")
    return Down(name, 0, node, port, begin, end, None, planned)


def _plans(spec: FleetSpec) -> Iterable[Maintenance]:
    return (one for one in spec.happenings if isinstance(one, Maintenance))


def _covers(plan: Maintenance, node: int, port: int, at: float) -> bool:
    is_there = plan.node == node and plan.port in (None, port)
    return is_there and plan.at_seconds <= at < plan.at_seconds + plan.for_seconds
