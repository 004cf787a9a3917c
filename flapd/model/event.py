"""Event: what the engine tells; the journal keeps it, everybody else reads it there."""

from typing import Literal

import msgspec

from flapd.model.times import SECOND_NS, Edge

Kind = Literal["flap", "drop"]
Status = Literal["open", "closed", "lost"]
Cause = Literal["link", "subnet", "unknown"]
Seen = Literal["observed", "unseen", "while_away"]
Layer = Literal["physical", "logical"]


class Outage(msgspec.Struct, frozen=True, tag="flap"):
    """From a down edge to the next up edge of one port; a higher revision replaces a lower."""

    id: str
    revision: int
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
    evidence: tuple[str, ...]
    recorded_ns: int
    """Monotonic time at which this revision was told."""

    @property
    def down_seconds_min(self) -> float | None:
        """Shortest time it can have been down; None while it is open."""
        if self.up is None:
            return None
        return max(0, self.up.earliest_ns - self.down.latest_ns) / SECOND_NS

    @property
    def down_seconds_max(self) -> float | None:
        """Longest time it can have been down; None while it is open."""
        if self.up is None:
            return None
        return (self.up.latest_ns - self.down.earliest_ns) / SECOND_NS


Event = Outage
