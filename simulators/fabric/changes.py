"""Changes: devices and netdevs that come, go and get other names while the node runs."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import msgspec

from simulators.fabric.names import Name
from simulators.fabric.node import FOREVER_NS
from simulators.fabric.schedule import nanoseconds

ALWAYS_NS = -FOREVER_NS
NEVER_NS = FOREVER_NS


class Gone(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="gone",
):
    """A device is not there, with its PCI function and its netdevs; or one port of it alone.

    Without a begin it comes later (hot plug), without an end it is removed.
    """

    device: str
    begin_seconds: float | None = None
    end_seconds: float | None = None
    number: int | None = None
    restarted: bool = True
    """It comes with all of its counters at 0; false: as if it had been there all the time."""

    def __post_init__(self) -> None:
        begin, end = self.begin_seconds, self.end_seconds
        if begin is not None and end is not None and end <= begin:
            raise ValueError("end_seconds must lie after begin_seconds")
        if begin is None and end is None:
            raise ValueError("what is gone needs begin_seconds, end_seconds or both")


class Renamed(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="renamed",
):
    """An RDMA device is registered again under another name; its counters go on."""

    device: str
    at_seconds: float
    to: Name


class NetdevReplaced(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="netdev_replaced",
):
    """A port's netdev is another one from then on: it counts from 0 and has another index."""

    device: str
    at_seconds: float
    to: Name
    number: int = 1


Change: TypeAlias = Gone | Renamed | NetdevReplaced
"""`device` is the name that the scenario's ports give it."""


class Life(NamedTuple):
    """A name that stands for one thing from `begin_ns` up to `end_ns`."""

    name: str
    begin_ns: int = ALWAYS_NS
    end_ns: int = NEVER_NS


class Lives:
    """What bears which name when; between two lives nothing is there."""

    def __init__(self, lives: Sequence[Life]) -> None:
        self.all = tuple(lives)
        self._begins_ns = [life.begin_ns for life in lives]

    def at(self, t_ns: int) -> Life | None:
        index = bisect_right(self._begins_ns, t_ns) - 1
        return self.all[index] if index >= 0 and t_ns < self.all[index].end_ns else None

    def moments_ns(self) -> set[int]:
        return {moment for life in self.all for moment in life[1:]} - {ALWAYS_NS, NEVER_NS}


def lives(name: str, names: Iterable[tuple[int, str]], gone: Iterable[tuple[int, int]]) -> Lives:
    """The lives of something first called `name`, with later names and times of absence."""
    later, absent = sorted(names), tuple(gone)
    renamed = [at_ns for at_ns, _ in later]
    moments = sorted({ALWAYS_NS, NEVER_NS, *renamed}.union(*absent))
    found = []
    for begin_ns, end_ns in pairwise(moments):
        if not any(since <= begin_ns < until for since, until in absent):
            called = [name, *(to for at_ns, to in later if at_ns <= begin_ns)][-1]
            found.append(Life(called, begin_ns, end_ns))
    return Lives(found)


def absence(gone: Gone, origin_ns: int) -> tuple[int, int]:
    return (
        ALWAYS_NS if gone.begin_seconds is None else origin_ns + nanoseconds(gone.begin_seconds),
        NEVER_NS if gone.end_seconds is None else origin_ns + nanoseconds(gone.end_seconds),
    )
