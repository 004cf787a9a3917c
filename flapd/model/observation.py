"""Observation: everything that enters the engine, in one sequence.

Nothing here is interpreted: a sample says what was read and between which two
moments, and what could not be read and why.
"""

from typing import Literal, TypeAlias

import msgspec

from flapd.model.fault import Fault
from flapd.model.finding import Note
from flapd.model.job import JobFound
from flapd.model.port import Port
from flapd.model.standing import Standing

READ_WITNESS = 1
READ_STATE = 2
READ_CARRIER = 4
"""The netdev's carrier and its counts were read with no change in between."""
READ_FIRST = 8
"""Nobody watched the port until now."""
READ_RATE = 16
"""The rate was read as well, in the same sweep and after the state."""
READ_STATISTICS = 32
"""The netdev's statistics, `ethtool/...`, were read: they alone may be a second older than the
rest, since the kernel can be long in telling them."""
READ_SLOW = 64
"""The slow tier was swept: what of it is not in `values` has not moved since the last time."""


class Sample(msgspec.Struct, frozen=True, array_like=True, tag="s"):
    """What one sweep over one port saw.

    Everything was read after `before_ns` and before `after_ns` (monotonic).
    `reads` says which groups were read successfully (READ_*). `values` holds what
    differs from the last sample of this port. Where the agent did not keep up, one
    sample stands for several sweeps and spans them.
    `errors` holds what could not be read: name -> errno name or what was wrong.
    """

    key: str
    before_ns: int
    after_ns: int
    reads: int
    values: dict[str, int] = {}
    errors: dict[str, str] = {}

    @property
    def first(self) -> bool:
        """The first sample since a sampler began to watch the port: all that can be read."""
        return bool(self.reads & READ_FIRST)


class PortSeen(msgspec.Struct, frozen=True, array_like=True, tag="port_seen"):
    """Discovery found this port, or found it changed."""

    port: Port
    monotonic_ns: int


class PortsPresent(msgspec.Struct, frozen=True, array_like=True, tag="ports"):
    """All ports that are there; `blind` are devices of which that cannot be told now."""

    keys: tuple[str, ...]
    blind: tuple[str, ...]
    monotonic_ns: int


class ReaderStuck(msgspec.Struct, frozen=True, array_like=True, tag="reader_stuck"):
    """A device's reader waits in one read since `since_ns`; None: it came back."""

    device: str
    since_ns: int | None
    monotonic_ns: int


class LinkReason(msgspec.Struct, frozen=True, array_like=True, tag="reason"):
    """Why a port is down, by what `source` said between these moments; it says that of a down.

    It tells neither that the port went down nor when.
    """

    key: str
    reason: str
    before_ns: int
    after_ns: int
    source: str


class ModuleSeen(msgspec.Struct, frozen=True, array_like=True, tag="module"):
    """Which transceiver or cable is in the port now; None where its maker left that blank."""

    key: str
    vendor: str | None
    part: str | None
    serial: str | None
    monotonic_ns: int


KernelLineAbout = Literal[
    "link_down", "link_up", "module", "temperature", "firmware", "pcie", "held"
]


class KernelLine(msgspec.Struct, frozen=True, array_like=True):
    """What a line tells, of the function, netdev or RDMA device that it names."""

    about: KernelLineAbout
    reason: str | None
    """As the kernel words it; None where it says only that the link moved."""
    pci: str | None = None
    netdev: str | None = None
    device: str | None = None


class KernelHint(msgspec.Struct, frozen=True, array_like=True, tag="kernel"):
    """The kernel printed this line not after `logged_ns`, and it was read at `received_ns`.

    It gives an outage its reason and has the port read; it narrows no bound: drivers print what
    did not change, and mlx5 prints that a link is down just before it counts it.
    """

    line: KernelLine
    logged_ns: int
    received_ns: int


class LinkHint(msgspec.Struct, frozen=True, array_like=True, tag="link"):
    """One netdev, as a message told of it that was received at `monotonic_ns`.

    What its counts had counted had happened by then: they narrow how late an edge was. How
    early, they tell only where the message answers a question of ours, asked at `asked_ns`:
    what they had not counted then had not happened. Flags, carrier and operstate narrow
    nothing. Counts of another `index` do not continue these: the netdev was made anew.
    """

    netdev: str
    index: int
    present: bool
    """False: it was removed, or went to another network namespace."""
    carrier_downs: int | None
    carrier_ups: int | None
    carrier: bool | None
    operstate: str | None
    flags: int
    """Bit 0 is IFF_UP (include/uapi/linux/if.h)."""
    asked_ns: int | None
    """None: the kernel told it unasked."""
    monotonic_ns: int


class ClockPair(msgspec.Struct, frozen=True, array_like=True, tag="clock"):
    """Both clocks at one moment, of one boot."""

    monotonic_ns: int
    unix_ns: int
    boot: str


class Tick(msgspec.Struct, frozen=True, array_like=True, tag="t"):
    """Time passed: what waits for a time looks at it now."""

    monotonic_ns: int


class Expectations(msgspec.Struct, frozen=True, array_like=True, tag="expect"):
    """What the configuration says this node should have; None = what it had before."""

    ports: int | None
    rate_mbps: int | None


class Maintenance(msgspec.Struct, frozen=True, array_like=True, tag="maintenance"):
    """Planned work until `until_ns`, or its end where that is past; `key` None = all ports."""

    key: str | None
    until_ns: int
    reason: str
    monotonic_ns: int


class Repaired(msgspec.Struct, frozen=True, array_like=True, tag="repaired"):
    """Somebody replaced cable or module of a port."""

    key: str
    note: str
    monotonic_ns: int


class JobSeen(msgspec.Struct, frozen=True, array_like=True, tag="job_seen"):
    """A job runs here, or something about it changed."""

    found: JobFound
    monotonic_ns: int


class JobsPresent(msgspec.Struct, frozen=True, array_like=True, tag="jobs"):
    """All jobs that run here; one that is not among them is over."""

    jobs: tuple[str, ...]
    blind_to: tuple[str, ...]
    """What of the node's processes cannot be seen, in words."""
    monotonic_ns: int


class FaultRead(msgspec.Struct, frozen=True, array_like=True, tag="fault_read"):
    """A log tells of a fault, as it was read: neither merged nor judged."""

    fault: Fault
    monotonic_ns: int


class Noted(msgspec.Struct, frozen=True, array_like=True, tag="noted"):
    """A log tells something besides faults, of this job if that is known."""

    job: str | None
    note: Note
    monotonic_ns: int


class DumpsRead(msgspec.Struct, frozen=True, array_like=True, tag="dumps"):
    """Where the groups of a job stand by all its dumps that were read so far."""

    job: str | None
    standings: tuple[Standing, ...]
    timeouts_seconds: tuple[float, ...]
    monotonic_ns: int


Observation: TypeAlias = (
    Sample
    | PortSeen
    | PortsPresent
    | ReaderStuck
    | LinkReason
    | ModuleSeen
    | KernelHint
    | LinkHint
    | ClockPair
    | Tick
    | Expectations
    | Maintenance
    | Repaired
    | JobSeen
    | JobsPresent
    | FaultRead
    | Noted
    | DumpsRead
)
