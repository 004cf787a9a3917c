"""Event: what the engine tells; the journal keeps it, everybody else reads it there."""

from hashlib import blake2b
from typing import Literal, TypeAlias, get_args

import msgspec

from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.model.job import Job
from flapd.model.stall import Stall
from flapd.model.times import Edge

Kind = Literal["flap", "drop"]
Status = Literal["open", "closed", "lost"]
Cause = Literal[
    "link", "subnet", "admin", "boot", "driver_reload", "removed", "maintenance", "unknown"
]
Seen = Literal["observed", "unseen", "while_away"]
Layer = Literal["physical", "logical"]

CAUSES: tuple[Cause, ...] = get_args(Cause)


class After(msgspec.Struct, frozen=True):
    """How the port came back."""

    rate_mbps: int
    downgraded: bool
    """Slower than it was before, or than it should be."""


class Outage(msgspec.Struct, frozen=True, tag="flap"):
    """From a down edge of one port to the next up edge, or a burst of such.

    A higher revision replaces a lower.
    """

    id: str
    revision: int
    node: str
    key: str
    port: str
    guid: str | None
    boot: str
    kind: Kind
    status: Status
    cause: Cause
    seen: Seen
    layer: Layer
    down: Edge
    """The first down."""
    up: Edge | None
    """The last up, so far; None while it is down."""
    count: int
    """Downs in it."""
    count_at_least: bool
    """The witness cannot count any further: there may have been more."""
    settled: bool
    """Its downs are in the totals: the witness has counted them, or never will."""
    evidence: tuple[str, ...]
    recorded_ns: int
    """Monotonic time at which this revision was told."""
    down_ns_min: int | None = None
    """Shortest time it can have been down, all downs together; None unless it is closed."""
    down_ns_max: int | None = None
    """Longest time it can have been down, all downs together; None unless it is closed."""
    member: str | None = None
    """Netdev of the member of a bond that went down."""
    after: After | None = None
    """None until the rate was read after it came back."""
    reason: str | None = None
    """What the module or the kernel's log says of it."""
    grace: bool = False
    """Soon after a boot, when links train: recorded, not alerted."""


Change = Literal[
    "found",
    "described",
    "module",
    "gone",
    "back",
    "forgotten",
    "flapping",
    "calm",
    "witness",
    "bit_errors",
    "maintenance",
    "repaired",
]


class PortChange(msgspec.Struct, frozen=True, tag="port"):
    """Something changed about a port other than up and down; each is a revision of the port."""

    id: str
    revision: int
    node: str
    key: str
    port: str
    guid: str | None
    change: Change
    note: str
    """In words: a new name, a status of the witness, who repaired what."""
    recorded_ns: int
    wall_offset_ns: int


def port_id(node: str, key: str) -> str:
    """Of all changes of one port: the same for as long as it is there."""
    return "port-" + blake2b(f"{node}|{key}".encode(), digest_size=8).hexdigest()


Event: TypeAlias = Outage | PortChange | Fault | Stall | Job | Incident
