"""Timeline: a port's schedule laid on the monotonic clock, and what can be counted of it.

All times are CLOCK_MONOTONIC in nanoseconds; at an edge's own nanosecond the edge has
happened.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from simulators.fabric.rates import Rate
from simulators.fabric.schedule import Flap, Kind, PortSchedule, nanoseconds

Phase = Literal["active", "down", "init", "armed", "admin"]
_LOGICAL: dict[str, Phase] = {"INIT": "init", "ARMED": "armed"}


@dataclass(frozen=True)
class Down:
    """Not usable from `begin_ns` to `active_ns`; the link is there again from `link_ns` on."""

    begin_ns: int
    link_ns: int
    active_ns: int
    kind: Kind = "physical"
    phase: Phase = "down"
    counted: bool = True
    rate_after: Rate | None = None


class Timeline:
    """`begin_ns` is when the port began to carry traffic."""

    def __init__(
        self,
        downs: Sequence[Down],
        rate: Rate,
        begin_ns: int,
        pauses_ns: Iterable[tuple[int, int]] = (),
        *,
        never_up: bool = False,
    ) -> None:
        self.outages = tuple(downs)
        self._steps_ns, self._phases = _steps(downs, "down" if never_up else "active")
        self._counted_ns = [d.begin_ns for d in downs if d.counted and d.kind != "logical"]
        self._leaves_ns = [d.begin_ns for d in downs]
        self._returns_ns = [d.active_ns for d in downs]
        changed = [(d.link_ns, d.rate_after) for d in downs if d.rate_after is not None]
        self._rates_ns = [link_ns for link_ns, _ in changed]
        self._rates = [rate, *(after for _, after in changed)]
        self._never_up = never_up
        self._begin_ns = begin_ns
        idle = ((d.begin_ns, d.active_ns) for d in downs)
        self._idle = _Spans((*idle, *pauses_ns), begin_ns)

    def phase(self, t_ns: int) -> Phase:
        return self._phases[bisect_right(self._steps_ns, t_ns)]

    def rate(self, t_ns: int) -> Rate:
        return self._rates[bisect_right(self._rates_ns, t_ns)]

    def downs(self, t_ns: int) -> int:
        """Downs of the link that have begun and that hardware counts."""
        return bisect_right(self._counted_ns, t_ns)

    def leaves(self, t_ns: int) -> int:
        """Times the port has ceased to be ACTIVE."""
        return bisect_right(self._leaves_ns, t_ns)

    def returns(self, t_ns: int) -> int:
        """Times the port has become ACTIVE again."""
        return bisect_right(self._returns_ns, t_ns)

    def traffic_ns(self, t_ns: int) -> int:
        """Time in which the port has carried traffic since it began."""
        if self._never_up:
            return 0
        return max(0, t_ns - self._begin_ns) - self._idle.until(t_ns)

    def edges_ns(self) -> list[int]:
        """Every moment at which the phase changes, in order."""
        return sorted(set(self._steps_ns))


class _Spans:
    """How much of the time from `begin_ns` on lies in any of some spans."""

    def __init__(self, spans_ns: Iterable[tuple[int, int]], begin_ns: int) -> None:
        merged: list[list[int]] = []
        for begin, end in sorted(spans_ns):
            since = max(begin, begin_ns)
            if merged and since <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            elif since < end:
                merged.append([since, end])
        self._begins = [begin for begin, _ in merged]
        self._ends = [end for _, end in merged]
        self._before = [0, *accumulate(end - begin for begin, end in merged)]

    def until(self, t_ns: int) -> int:
        begun = bisect_right(self._begins, t_ns)
        if begun == 0:
            return 0
        last = min(t_ns, self._ends[begun - 1]) - self._begins[begun - 1]
        return self._before[begun - 1] + last


def timeline_of(schedule: PortSchedule, rate: Rate, origin_ns: int, begin_ns: int) -> Timeline:
    """The schedule counted from `origin_ns`; `rate` is what the link runs at to begin with."""
    subnet_ns = nanoseconds(schedule.subnet_seconds)
    return Timeline(
        [_down(flap, origin_ns, subnet_ns) for flap in schedule.flaps],
        rate,
        begin_ns,
        [
            (origin_ns + nanoseconds(off.begin_seconds), origin_ns + nanoseconds(off.end_seconds))
            for off in schedule.traffic_off
        ],
        never_up=schedule.never_up,
    )


def all_down(members: Sequence[Timeline]) -> tuple[Down, ...]:
    """The times in which none of them is up: when a bond of them is down."""
    downs, since_ns = [], None
    for edge_ns in sorted({edge for member in members for edge in member.edges_ns()}):
        if all(member.phase(edge_ns) != "active" for member in members):
            since_ns = edge_ns if since_ns is None else since_ns
        elif since_ns is not None:
            downs.append(Down(since_ns, edge_ns, edge_ns))
            since_ns = None
    return tuple(downs)


def _down(flap: Flap, origin_ns: int, subnet_ns: int) -> Down:
    begin_ns = origin_ns + flap.start_ns
    phases: dict[Kind, Phase] = {"physical": "down", "admin": "admin"}
    return Down(
        begin_ns=begin_ns,
        link_ns=begin_ns if flap.kind == "logical" else origin_ns + flap.end_ns,
        active_ns=origin_ns + flap.usable_ns(subnet_ns),
        kind=flap.kind,
        phase=phases.get(flap.kind) or _LOGICAL[flap.state],
        counted=flap.counted,
        rate_after=flap.rate_after,
    )


def _steps(downs: Sequence[Down], first: Phase) -> tuple[list[int], list[Phase]]:
    """Moments at which the phase changes, and the phases before, between and after them."""
    moments: list[int] = []
    phases: list[Phase] = [first]
    for down in downs:
        waits = "init" if down.kind != "logical" and down.link_ns < down.active_ns else None
        moments.append(down.begin_ns)
        phases.append(down.phase)
        if waits is not None:
            moments.append(down.link_ns)
            phases.append("init")
        moments.append(down.active_ns)
        phases.append("active")
    return moments, phases
