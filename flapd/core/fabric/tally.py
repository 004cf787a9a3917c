"""Tally: downs on their way into the totals and the damping score of a port.

A down is counted once, under the cause that is certain by then: who switches an interface
off takes the carrier away first and the flag that tells of it later.
"""

from collections.abc import Mapping

import msgspec

from flapd.core.fabric.damping import Damping, add_downs
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.view import COUNTED_CAUSES, LinkTotals
from flapd.model.event import Cause, Layer, Outage
from flapd.model.times import SECOND_NS

CERTAIN_AFTER_NS = SECOND_NS
"""What a port has been down for so long without being switched off, nobody switched off."""

CAUSE_OF_LAYER: dict[Layer | None, Cause] = {
    "physical": "link",
    "logical": "subnet",
    None: "unknown",
}
BY_ITSELF = frozenset({"link", "subnet", "unknown"})
"""Causes that are of the fabric: all others people, drivers or reboots had."""


class Uncounted(msgspec.Struct, frozen=True):
    """Downs of one outage, known since a moment."""

    outage: str
    layer: Layer | None
    downs: int
    since_ns: int
    planned: bool = False
    """They fell into planned work, whatever the first down of the outage did."""


class Tally(msgspec.Struct):
    uncounted: list[Uncounted] = msgspec.field(default_factory=list)
    totals: LinkTotals = msgspec.field(default_factory=LinkTotals)
    damping: Damping = msgspec.field(default_factory=Damping)

    def add(
        self, outage: str, layer: Layer | None, downs: int, now_ns: int, *, planned: bool
    ) -> None:
        self.uncounted.append(Uncounted(outage, layer, downs, now_ns, planned))

    def count_certain(
        self, outages: Mapping[str, Outage], down: str | None, settings: FlapSettings, now_ns: int
    ) -> None:
        """Counts all but what may still turn out to be of another cause: `down` goes on."""
        waiting = []
        for entry in self.uncounted:
            if entry.outage == down and now_ns - entry.since_ns < CERTAIN_AFTER_NS:
                waiting.append(entry)
            else:
                self._count(entry, outages[entry.outage], settings, now_ns)
        self.uncounted = waiting

    def _count(self, entry: Uncounted, outage: Outage, settings: FlapSettings, now_ns: int) -> None:
        cause = CAUSE_OF_LAYER[entry.layer] if outage.cause in BY_ITSELF else outage.cause
        if entry.planned:
            cause = "maintenance"
        self.totals.downs[cause] = self.totals.downs.get(cause, 0) + entry.downs
        if cause in COUNTED_CAUSES and not outage.grace:
            add_downs(self.damping, entry.downs, outage.down.earliest_ns, settings, now_ns)
