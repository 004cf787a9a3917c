"""Schedule: when a port is not usable and when it carries no traffic, as scenarios say it."""

import math
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

import msgspec

from flapd.model.times import SECOND_NS
from simulators.fabric.rates import Rate

Kind = Literal["physical", "logical", "admin"]
_MICROSECONDS = 1_000_000

NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class Flap(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """From `start_seconds` after the origin the port is not usable, for `down_seconds`.

    physical: the link goes. logical: the link stays and the subnet manager takes the port
    to `state`. admin: somebody disables the port (on Ethernet: the interface).
    """

    start_seconds: NotNegative
    down_seconds: Positive
    kind: Kind = "physical"
    state: Literal["INIT", "ARMED"] = "INIT"
    counted: bool = True
    """False: the hardware's counters do not notice it."""
    rate_after: Rate | None = None
    """What the link runs at from its return on; None: as before."""

    def __post_init__(self) -> None:
        if self.kind == "logical" and self.rate_after is not None:
            raise ValueError("rate_after needs a link that went: kind physical or admin")

    @property
    def start_ns(self) -> int:
        return nanoseconds(self.start_seconds)

    @property
    def end_ns(self) -> int:
        return self.start_ns + nanoseconds(self.down_seconds)

    def usable_ns(self, subnet_ns: int) -> int:
        """When the port is ACTIVE again: a link that returns waits for its subnet manager."""
        return self.end_ns + (0 if self.kind == "logical" else subnet_ns)


class Span(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A time in which something holds, in seconds from the origin."""

    begin_seconds: float
    end_seconds: float

    def __post_init__(self) -> None:
        if self.end_seconds <= self.begin_seconds:
            raise ValueError("end_seconds must lie after begin_seconds")


class PortSchedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The flaps of one port, in order of time and never overlapping (else ValueError).

    `subnet_seconds` is the time from link up to ACTIVE, in which the port waits for
    its subnet manager. In the spans of `traffic_off` nothing is sent although it could be.
    """

    flaps: tuple[Flap, ...] = ()
    subnet_seconds: NotNegative = 0.0
    never_up: bool = False
    traffic_off: tuple[Span, ...] = ()

    def __post_init__(self) -> None:
        if self.never_up and self.flaps:
            raise ValueError("a port that is never_up has no flaps")
        subnet_ns = nanoseconds(self.subnet_seconds)
        for before, flap in pairwise(self.flaps):
            if flap.start_ns <= before.usable_ns(subnet_ns):
                msg = f"the flap at {flap.start_seconds} s begins before the port was active again"
                raise ValueError(msg)


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
    kinds: Sequence[Kind] = ("physical",),
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
        flaps.append(Flap(start / _MICROSECONDS, down / _MICROSECONDS, rng.choice(kinds)))
        start += down + gap
    return tuple(flaps)


def _microseconds(seconds: float) -> int:
    return math.ceil(round(seconds * _MICROSECONDS, 3))
