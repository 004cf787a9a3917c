"""Stall and Slowdown: what the traffic of a job on this node tells, without any log."""

from typing import Literal, get_args

import msgspec

from flapd.model.times import SECOND_NS

StallClass = Literal[
    "local_link",
    "remote",
    "this_node",
    "checkpoint",
    "evaluation",
    "job_end",
    "start_up",
    "unknown",
]

STALL_CLASSES: tuple[StallClass, ...] = get_args(StallClass)


class Stall(msgspec.Struct, frozen=True, kw_only=True, tag="stall"):
    """A job's traffic stood still on all ports that carry it; monotonic times in nanoseconds.

    `wall_offset_ns` turns them into unix time. A higher revision replaces a lower.
    """

    id: str
    revision: int = 0
    node: str
    job: str
    begin_ns: int
    """The last traffic before it was seen in the sample that ended here."""
    end_ns: int | None = None
    """The next traffic was seen in the sample that began here; None: it goes on."""
    resolution_ns: int
    """Both may be off by one sample."""
    stall_class: StallClass
    ports: tuple[str, ...]
    """Keys of those that stood still, the first to do so first."""
    expected_seconds: float
    """So long traffic pauses there in an ordinary step; 0 where it was cut off in full flow."""
    blind_to: tuple[str, ...] = ()
    """What would have told the class and could not be seen."""
    end_unseen_ns: int = 0
    """Nobody looked for so long before the end: traffic may have come back so much earlier."""
    wall_offset_ns: int = 0
    """As the clock stood when this revision was told."""

    @property
    def begin_unix_ns(self) -> int:
        return self.begin_ns + self.wall_offset_ns

    @property
    def end_unix_ns(self) -> int | None:
        return None if self.end_ns is None else self.end_ns + self.wall_offset_ns

    @property
    def seconds(self) -> float | None:
        return None if self.end_ns is None else (self.end_ns - self.begin_ns) / SECOND_NS


class Slowdown(msgspec.Struct, frozen=True, kw_only=True, tag="slowdown"):
    """A job moves less than it used to, over whole steps: a port that lost speed, no flap."""

    job: str
    begin_ns: int
    end_ns: int | None
    bytes_per_second: float
    usual_bytes_per_second: float
