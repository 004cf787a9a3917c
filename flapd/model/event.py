"""Event: what the engine tells; the journal keeps it, everybody else reads it there."""

from typing import Literal

import msgspec

from flapd.model.times import Edge

Kind = Literal["flap", "drop"]
Status = Literal["open", "closed", "lost"]
Cause = Literal["link", "subnet", "unknown"]
Seen = Literal["observed", "unseen", "while_away"]
Layer = Literal["physical", "logical"]


class Outage(msgspec.Struct, frozen=True, tag="flap"):
    """From a down edge to the next up edge of one port; a higher revision replaces a lower."""

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
    up: Edge | None
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
    """Shortest time it can have been down; None unless it is closed."""
    down_ns_max: int | None = None
    """Longest time it can have been down; None unless it is closed."""


Event = Outage
