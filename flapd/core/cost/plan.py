"""Plan: which ports cost most, which nodes to drain for them, and how many at once.

What all ports of a node or several nodes did in the same seconds is their switch's or their
subnet's doing: it counts for none of them, and what is left is capped, so that no plan ever takes
a herd of nodes out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from flapd.core.cost.drain import (
    break_even_flaps,
    break_even_per_second,
    drain_pays,
    expected_per_hour,
)
from flapd.core.cost.price import HOUR_SECONDS

DAY_HOURS = 24.0
SAME_SECONDS = 30.0
HERD_NODES = 3
"""So many nodes with a down in the same seconds share its cause."""
DRAINED_SHARE = 0.01
"""Of all nodes, at once: a plan that wants more has found a cause that it does not know."""

Step = Literal["drain", "wait", "leave"]
"""`wait`: it would pay, and others go first."""


class Down(msgspec.Struct, frozen=True):
    """A port went down."""

    node: str
    port: str
    at_seconds: float
    """Unix time."""
    lost_gpu_seconds: float
    """To a flap of this length, under the policy in force."""


class Asked(msgspec.Struct, frozen=True):
    """What a plan is for; seconds and GPU-seconds."""

    now_seconds: float
    span_hours: float
    """That the downs are of."""
    drain_gpu_seconds: float
    remaining_seconds: float
    """How long the job still runs."""
    most: int
    """Nodes that may be drained at once."""
    ports_of: Mapping[str, int]
    """How many ports each node has that could go down."""


class PortPlan(msgspec.Struct, frozen=True):
    """What a port costs and what to do about it; None = never."""

    node: str
    port: str
    flaps: int
    shared: int
    """Downs that others had in the same seconds, which do not count."""
    per_hour: float
    gpu_seconds_per_flap: float
    gpu_seconds_per_day: float
    break_even_flaps: float | None
    break_even_per_hour: float | None
    pays_after_seconds: float | None
    """At this rate."""
    step: Step


class Draining(msgspec.Struct, frozen=True):
    """When taking a node out pays, and which; None = never, infinite = at once."""

    gpu_seconds: float
    """That a drain costs."""
    remaining_seconds: float
    gpu_seconds_per_flap: float
    """Of all flaps, under the policy in force."""
    break_even_flaps: float | None
    break_even_per_hour: float | None
    most_nodes: int
    ports: tuple[PortPlan, ...]
    """The dearest first: the cable to look at first."""


def draining(per_flap: float, downs: Sequence[Down], asked: Asked) -> Draining:
    """`per_flap`: GPU-seconds that a flap costs on average."""
    drain, remaining = asked.drain_gpu_seconds, asked.remaining_seconds
    even = break_even_per_second(drain, per_flap, remaining)
    return Draining(
        gpu_seconds=drain,
        remaining_seconds=remaining,
        gpu_seconds_per_flap=per_flap,
        break_even_flaps=break_even_flaps(drain, per_flap),
        break_even_per_hour=None if even is None else even * HOUR_SECONDS,
        most_nodes=asked.most,
        ports=tuple(drain_plan(downs, asked)),
    )


def most_drains(nodes: int) -> int:
    """At least one, so that a single bad node can be taken out."""
    return max(1, int(nodes * DRAINED_SHARE))


def drain_plan(downs: Sequence[Down], asked: Asked) -> list[PortPlan]:
    """The dearest port first; at most `most` nodes of them are to be drained."""
    shared = _shared(downs, asked.ports_of)
    by_port: dict[tuple[str, str], list[Down]] = {}
    for one in downs:
        by_port.setdefault((one.node, one.port), []).append(one)
    found = [_port(name, of_port, shared, asked) for name, of_port in by_port.items()]
    found.sort(key=lambda one: (-one.gpu_seconds_per_day, one.node, one.port))
    return _capped(found, asked.most)


class _Window:
    """The downs of some seconds, and who had them."""

    def __init__(self) -> None:
        self._downs: Counter[tuple[str, str]] = Counter()
        self._ports: Counter[str] = Counter()

    def add(self, one: Down) -> None:
        self._downs[one.node, one.port] += 1
        if self._downs[one.node, one.port] == 1:
            self._ports[one.node] += 1

    def drop(self, one: Down) -> None:
        self._downs[one.node, one.port] -= 1
        if not self._downs[one.node, one.port]:
            self._ports[one.node] -= 1
        if not self._ports[one.node]:
            del self._ports[one.node]

    def is_shared(self, one: Down, ports_of: Mapping[str, int]) -> bool:
        """By all ports of its node, or by several nodes."""
        return len(self._ports) >= HERD_NODES or 1 < self._ports[one.node] == ports_of[one.node]


def _shared(downs: Sequence[Down], ports_of: Mapping[str, int]) -> set[Down]:
    ordered = sorted(downs, key=lambda one: one.at_seconds)
    window, found = _Window(), set[Down]()
    first, last = 0, 0
    for one in ordered:
        while one.at_seconds - ordered[first].at_seconds > SAME_SECONDS:
            window.drop(ordered[first])
            first += 1
        while last < len(ordered) and ordered[last].at_seconds - one.at_seconds <= SAME_SECONDS:
            window.add(ordered[last])
            last += 1
        if window.is_shared(one, ports_of):
            found.add(one)
    return found


def _port(
    name: tuple[str, str], of_port: Sequence[Down], shared: set[Down], asked: Asked
) -> PortPlan:
    own = [one for one in of_port if one not in shared]
    per_hour = _rate([one.at_seconds for one in own], asked)
    per_flap = sum(one.lost_gpu_seconds for one in own) / len(own) if own else 0.0
    drain, remaining = asked.drain_gpu_seconds, asked.remaining_seconds
    even = break_even_per_second(drain, per_flap, remaining)
    flaps = break_even_flaps(drain, per_flap)
    pays = drain_pays(
        drain=drain, per_flap=per_flap, flaps_per_hour=per_hour, remaining_seconds=remaining
    )
    return PortPlan(
        node=name[0],
        port=name[1],
        flaps=len(own),
        shared=len(of_port) - len(own),
        per_hour=per_hour,
        gpu_seconds_per_flap=per_flap,
        gpu_seconds_per_day=per_flap * per_hour * DAY_HOURS,
        break_even_flaps=flaps,
        break_even_per_hour=None if even is None else even * HOUR_SECONDS,
        pays_after_seconds=None if flaps is None else flaps / per_hour * HOUR_SECONDS,
        step="drain" if pays else "leave",
    )


def _rate(times: Sequence[float], asked: Asked) -> float:
    """By the last day or by the whole span, whichever is worse."""
    day_ago = asked.now_seconds - DAY_HOURS * HOUR_SECONDS
    in_the_last_day = sum(at >= day_ago for at in times)
    return max(
        expected_per_hour(in_the_last_day, DAY_HOURS),
        expected_per_hour(len(times), max(DAY_HOURS, asked.span_hours)),
    )


def _capped(ports: Iterable[PortPlan], most: int) -> list[PortPlan]:
    """Ports of a node that is drained anyway take no more room."""
    told, nodes = [], set[str]()
    for one in ports:
        if one.step == "drain" and one.node not in nodes and len(nodes) >= most:
            told.append(msgspec.structs.replace(one, step="wait"))
            continue
        if one.step == "drain":
            nodes.add(one.node)
        told.append(one)
    return told
