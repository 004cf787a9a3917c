"""Observed: what an agent on one node would have read, sweep by sweep, without any reading."""

import heapq
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_RATE,
    READ_SLOW,
    READ_STATE,
    READ_WITNESS,
    ClockPair,
    Observation,
    PortSeen,
    PortsPresent,
    Sample,
    Tick,
)
from flapd.model.port import Port
from flapd.model.times import MILLISECOND_NS, SECOND_NS
from simulators.fabric.counters import CARRIER_DOWNS, CARRIER_RULES, CARRIER_UPS
from simulators.fabric.port import SimulatedPort, simulated_port
from simulators.fabric.spec import PortSpec, Spec
from simulators.fabric.timeline import Phase
from simulators.job.node import QUIET_BYTES_PER_SECOND

_FAST_NS = 100 * MILLISECOND_NS
_SLOW_EVERY = 5
_CLOSE_NS = 60 * SECOND_NS
"""After an edge the state is read in each sweep."""
_READ_MICROSECONDS = 200
_DULL_NS = 5 * SECOND_NS
_DULL_SWEEPS = 10
_BEFORE_NS = 3600 * SECOND_NS
"""So long the counters have counted when the agent begins to read."""
_LINK_DOWNED, _XMIT, _RCV = (
    f"counters/{name}" for name in ("link_downed", "port_xmit_data", "port_rcv_data")
)
_SLOW_COUNTERS = (
    _RCV,
    "counters/symbol_error",
    "counters/link_error_recovery",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/roce_adp_retrans",
    "hw_counters/req_transport_retries_exceeded",
)
_STATES: dict[Phase, int] = {"active": 4, "armed": 3, "init": 2, "down": 1, "admin": 1}
_POLLING, _DISABLED, _LINK_UP = 2, 3, 5
_UP_FLAGS = 0x1003

Value = Callable[[int], int]


class Watch(NamedTuple):
    """From when to when the agent reads, in seconds from the origin."""

    begin: float
    end: float
    origin_ns: int
    """Monotonic."""
    wall_offset_ns: int
    boot: str
    seed: int = 0
    closely: tuple[tuple[float, float], ...] | None = None
    """When each sweep is shown, elsewhere one of ten: seconds from the origin; None: always."""

    def is_close(self, at_ns: int) -> bool:
        if self.closely is None:
            return True
        at = (at_ns - self.origin_ns) / SECOND_NS
        return any(begin <= at <= end for begin, end in self.closely)

    def ns(self, at: float) -> int:
        return self.origin_ns + round(at * SECOND_NS)


def ports_of(scenario: Spec) -> list[Port]:
    """As discovery finds them."""
    return [
        Port(
            key=f"{spec.guid}/{spec.number}",
            device=spec.device,
            number=spec.number,
            link_layer=spec.link_layer,
            guid=spec.guid,
            pci=spec.pci,
            driver=f"{spec.driver}_core",
            netdev=spec.netdev,
            witnesses=(_witness_of(spec),),
        )
        for spec in scenario.ports
    ]


def fabric_observed(scenario: Spec, watch: Watch) -> Iterator[Observation]:
    """In order of time; what jobs, logs and dumps tell is not in it."""
    begin_ns = watch.ns(watch.begin)
    ports = ports_of(scenario)
    yield ClockPair(begin_ns, begin_ns + watch.wall_offset_ns, watch.boot)
    yield from (PortSeen(port, begin_ns) for port in ports)
    yield PortsPresent(tuple(port.key for port in ports), (), begin_ns)
    samples = (
        _samples(spec, port, watch, number)
        for number, (spec, port) in enumerate(zip(scenario.ports, ports, strict=True))
    )
    yield from heapq.merge(*samples, _ticks(watch), key=moment_ns)


def moment_ns(observation: Observation) -> int:
    """When the agent has it."""
    if isinstance(observation, Sample):
        return observation.after_ns
    return int(getattr(observation, "monotonic_ns", 0))


def _ticks(watch: Watch) -> Iterator[Observation]:
    for at_ns in range(watch.ns(watch.begin), watch.ns(watch.end), SECOND_NS):
        yield Tick(at_ns)


def _samples(spec: PortSpec, port: Port, watch: Watch, number: int) -> Iterator[Sample]:
    rng = random.Random(f"{watch.seed} {number}")
    link = simulated_port(spec, (), number, watch.origin_ns, watch.ns(watch.begin) - _BEFORE_NS)
    readings = _Readings(link)
    start_ns = watch.ns(watch.begin) + number * 7 * MILLISECOND_NS
    is_dull = False
    for sweep, at_ns in enumerate(range(start_ns, watch.ns(watch.end), _FAST_NS)):
        if sweep % _DULL_SWEEPS == 0:
            is_dull = not watch.is_close(at_ns) or readings.are_dull(at_ns)
        elif is_dull:
            continue
        # Whole microseconds: random() is much faster than randrange().
        before_ns = at_ns + int(rng.random() * _READ_MICROSECONDS) * 1000
        after_ns = before_ns + 1000 + int(rng.random() * _READ_MICROSECONDS) * 1000
        is_slow = sweep % _SLOW_EVERY == 0 or readings.is_close(before_ns)
        reads = readings.reads(first=sweep == 0, slow=is_slow)
        yield Sample(port.key, at_ns, after_ns, reads, readings.changed(before_ns, slow=is_slow))


class _Readings:
    """What reading one port at a moment gives, and what of it is new."""

    def __init__(self, link: SimulatedPort) -> None:
        self._link = link
        self._edges = link.timeline.edges_ns()
        self._edge = -1
        self._of_link = _of_link(link)
        self._fast = _counters(link, _XMIT)
        self._slow = _counters(link, *_SLOW_COUNTERS)
        self._shown: dict[str, int] = {}
        self._is_quiet = link.spec.bytes_per_second == QUIET_BYTES_PER_SECOND

    def reads(self, *, first: bool, slow: bool) -> int:
        carrier = 0 if self._link.infiniband else READ_CARRIER
        more = READ_STATE | READ_SLOW if slow else 0
        return READ_WITNESS | carrier | more | (READ_FIRST | READ_RATE if first else 0)

    def changed(self, at_ns: int, *, slow: bool) -> dict[str, int]:
        """What tells of the link moves at its edges alone."""
        values = {name: value(at_ns) for name, value in self._fast.items()}
        edge = bisect_right(self._edges, at_ns)
        if edge != self._edge:
            self._edge = edge
            values |= {name: value(at_ns) for name, value in self._of_link.items()}
        if slow:
            values |= {name: value(at_ns) for name, value in self._slow.items()}
        shown = self._shown
        changed = {name: value for name, value in values.items() if shown.get(name) != value}
        shown |= changed
        return changed

    def is_close(self, at_ns: int) -> bool:
        """To an edge that it is soon after."""
        return any(edge <= at_ns < edge + _CLOSE_NS for edge in self._edges)

    def are_dull(self, at_ns: int) -> bool:
        """Nothing moves long before and after: then one sample stands for many sweeps."""
        first_ns, last_ns = at_ns - _DULL_NS, at_ns + 2 * _DULL_NS
        traffic = self._link.timeline.traffic_ns
        is_silent = self._is_quiet or traffic(first_ns) == traffic(last_ns)
        return is_silent and not any(at_ns - _CLOSE_NS < edge < last_ns for edge in self._edges)


def _witness_of(spec: PortSpec) -> str:
    return _LINK_DOWNED if spec.link_layer == "InfiniBand" else CARRIER_DOWNS


def _counters(link: SimulatedPort, *names: str) -> dict[str, Value]:
    rules = {**link.spec.shape.rules(link.spec.link_layer), **CARRIER_RULES}
    return {name: link.source.counter(name, rules[name]).value for name in names if name in rules}


def _of_link(link: SimulatedPort) -> dict[str, Value]:
    """Files that the state of a port and of its netdev is read from."""
    lost = _POLLING if link.infiniband else _DISABLED
    found: dict[str, Value] = {
        "state": lambda t_ns: _STATES[link.phase(t_ns)],
        "phys_state": lambda t_ns: lost if link.phase(t_ns) == "down" else _LINK_UP,
        "rate_mbps": lambda t_ns: link.timeline.rate(t_ns).mbps,
    }
    if link.infiniband:
        return found | _counters(link, _LINK_DOWNED)
    return {
        **found,
        **_counters(link, CARRIER_DOWNS, CARRIER_UPS),
        "net/carrier": lambda t_ns: int(link.phase(t_ns) == "active"),
        "net/flags": lambda _: _UP_FLAGS,
    }
