"""Fault: one piece of evidence that a job was hurt, from its own logs, counters or the kernel."""

from typing import Literal, get_args

import msgspec

from flapd.model.times import SECOND_NS

FaultKind = Literal[
    "watchdog_timeout",
    "transport_error",
    "port_event",
    "fatal_event",
    "nccl_error",
    "heartbeat",
    "dump_signal",
    "process_death",
    "store_error",
    "counter",
    "kernel",
]

FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)

LONGEST_TEXT_BYTES = 1024


class Place(msgspec.Struct, frozen=True):
    """Where it was read."""

    file: str
    offset: int
    """Of its line's first byte."""


class Fault(msgspec.Struct, frozen=True, kw_only=True, tag="fault"):
    """What one message says; None where it does not say.

    Times are unix time in nanoseconds. A higher revision replaces a lower.
    """

    id: str
    kind: FaultKind
    form: str
    """Which message it is."""
    text: str
    """At most LONGEST_TEXT_BYTES of UTF-8, without control characters."""
    time_ns: int | None
    """The best that is known; None: neither did it carry a time, nor was anybody reading."""
    clock_error_ns: int
    """How far off `time_ns` may be."""
    logged_ns: int | None = None
    """By the clock of the process, in the zone assumed."""
    arrived_ns: int | None = None
    """When it was read or, better, when the container's runtime took it."""
    revision: int = 0
    node: str = ""
    job: str | None = None
    primary: bool = False
    consequence: bool = False
    """By its nature it follows an error that was there before."""
    family: str | None = None
    """Which releases print it so."""
    rank: int | None = None
    """In the whole job."""
    group_rank: int | None = None
    """In the process group, which is another number in any job with sub-groups."""
    process_group: str | None = None
    op: str | None = None
    seq: int | None = None
    last_enqueued: int | None = None
    last_completed: int | None = None
    timeout_seconds: float | None = None
    ran_seconds: float | None = None
    hca: str | None = None
    port: int | None = None
    peer: str | None = None
    """Its address out of band, which is not that of a NIC."""
    local_gid: str | None = None
    remote_gid: str | None = None
    direction: str | None = None
    event: str | None = None
    """Of the device, or what happened to the process, in the words of the message."""
    status: int | None = None
    """Number of the work completion or the event; exit code of a process."""
    vendor: int | None = None
    """The vendor's number of a work completion."""
    host: str | None = None
    pid: int | None = None
    repeats: int = 1
    """Messages that say the same."""
    merged_into: str | None = None
    """Id of another fault that turned out to be the same: this one is to be left out."""
    source: Place | None = None

    @property
    def started_ns(self) -> int | None:
        """When what ran into a timeout was enqueued."""
        if self.time_ns is None or self.ran_seconds is None:
            return None
        return self.time_ns - round(self.ran_seconds * SECOND_NS)
