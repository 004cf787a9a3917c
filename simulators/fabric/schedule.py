"""Schedule: when a port is down, and what can be counted of it at any moment."""

import math
import random
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Literal

import msgspec

from flapd.model.times import SECOND_NS

Phase = Literal["active", "down", "subnet"]
_PHASES: tuple[Phase, ...] = ("active", "down", "subnet")
_MICROSECONDS = 1_000_000

NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class Flap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The link goes down `start_seconds` after the origin and is down for `down_seconds`."""

    start_seconds: NotNegative
    down_seconds: Positive

    @property
    def start_ns(self) -> int:
        return nanoseconds(self.start_seconds)

    @property
    def end_ns(self) -> int:
        return self.start_ns + nanoseconds(self.down_seconds)


class PortSchedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The flaps of one port, in order of time and never overlapping (else ValueError).

    `subnet_seconds` is the time from link up to ACTIVE, in which the port waits for
    its subnet manager.
    """

    flaps: tuple[Flap, ...] = ()
    subnet_seconds: NotNegative = 0.0

    def __post_init__(self) -> None:
        subnet_ns = nanoseconds(self.subnet_seconds)
        for before, flap in pairwise(self.flaps):
            if flap.start_ns <= before.end_ns + subnet_ns:
                msg = f"the flap at {flap.start_seconds} s begins before the port was active again"
                raise ValueError(msg)


class Timeline:
    """A port's schedule laid on the monotonic clock.

    All times are CLOCK_MONOTONIC in nanoseconds; at an edge's own nanosecond the
    edge has happened. `begin_ns` is when the port began to carry traffic.
    """

    def __init__(self, schedule: PortSchedule, origin_ns: int, begin_ns: int) -> None:
        subnet_ns = nanoseconds(schedule.subnet_seconds)
        self._edges = [
            origin_ns + edge_ns
            for flap in schedule.flaps
            for edge_ns in (flap.start_ns, flap.end_ns, flap.end_ns + subnet_ns)
        ]
        self._begin_ns = begin_ns
        # Where the n-th active span begins, and the active time before it.
        self._active_from_ns = [begin_ns, *self._edges[2::3]]
        self._active_before_ns = [0]
        for since_ns, down_ns in zip(self._active_from_ns, self._edges[::3], strict=False):
            self._active_before_ns.append(self._active_before_ns[-1] + max(0, down_ns - since_ns))

    def phase(self, t_ns: int) -> Phase:
        return _PHASES[bisect_right(self._edges, t_ns) % 3]

    def downs(self, t_ns: int) -> int:
        """Downs that have begun."""
        return (bisect_right(self._edges, t_ns) + 2) // 3

    def actives(self, t_ns: int) -> int:
        """Times the port has become ACTIVE again."""
        return bisect_right(self._edges, t_ns) // 3

    def active_ns(self, t_ns: int) -> int:
        """Time the port has been ACTIVE since it began."""
        passed = bisect_right(self._edges, t_ns)
        span, phase = divmod(passed, 3)
        if phase:
            return self._active_before_ns[span + 1]
        return self._active_before_ns[span] + max(0, t_ns - self._active_from_ns[span])

    def outages(self) -> Iterator[tuple[int, int]]:
        """Each (down, ACTIVE again)."""
        return zip(self._edges[::3], self._edges[2::3], strict=True)

    def edges_ns(self) -> list[int]:
        """Every moment at which the phase changes, in order."""
        return sorted(set(self._edges))


def nanoseconds(seconds: float) -> int:
    return round(seconds * SECOND_NS)


def random_flaps(
    *,
    seed: int,
    count: int,
    shortest_seconds: float,
    longest_seconds: float,
    begin_seconds: float,
    gap_seconds: float,
) -> tuple[Flap, ...]:
    """Flaps after `begin_seconds`, at least `gap_seconds` from each up to the next down.

    The same seed gives the same flaps; times are whole microseconds.
    """
    rng = random.Random(seed)
    shortest, longest = _microseconds(shortest_seconds), _microseconds(longest_seconds)
    gap = _microseconds(gap_seconds)
    start = _microseconds(begin_seconds)
    flaps = []
    for _ in range(count):
        start += rng.randint(0, gap)
        down = rng.randint(shortest, longest)
        flaps.append(Flap(start / _MICROSECONDS, down / _MICROSECONDS))
        start += down + gap
    return tuple(flaps)


def _microseconds(seconds: float) -> int:
    return math.ceil(round(seconds * _MICROSECONDS, 3))
