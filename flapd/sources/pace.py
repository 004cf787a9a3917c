"""Pace: how much longer than configured the intervals of a device are, and why.

Counters go on counting while they are read less often: an outage is dated less sharply
then, and none is missed.
"""

from collections.abc import Mapping

import msgspec

from flapd.core.fabric.catalogue import Tier
from flapd.model.times import SECOND_NS

SLOWEST = 8
"""Intervals grow to no more than this many times what is configured."""
SWEEPS_LOOKED_AT = 10
LARGEST_SHARE = 0.2
"""Of its interval that a sweep may take; where it takes more, the interval is doubled."""
SLOWABLE: tuple[Tier, ...] = ("slow", "fast")
"""What is rare costs little."""
CALM_SHARE = 0.05
CALM_NS = 60 * SECOND_NS
"""So long must sweeps have taken less than the calm share before the interval is halved again."""


class Swept(msgspec.Struct, frozen=True):
    """One sweep over all ports of a device."""

    tier: Tier
    interval_ns: int
    """Then, from one such sweep to the next."""
    ended_ns: int
    took_ns: int
    late_ns: int | None = None
    """How long after it was due it began; None where that does not matter."""


class Sweeps(msgspec.Struct):
    """The last sweeps of one tier."""

    count: int = 0
    share: float = 0.0
    """Sum of the shares of their intervals that they took."""


class Pace:
    """Follows how long the sweeps of one device take."""

    def __init__(self) -> None:
        self.factor = 1
        self._sweeps: dict[str, Sweeps] = {}
        self._calm_since_ns: int | None = None

    def take(self, swept: Swept) -> None:
        """One sweep that hung is one interval and no more: what hangs is not slow, and is told."""
        now_ns = swept.ended_ns
        sweeps = self._sweeps.setdefault(swept.tier, Sweeps())
        sweeps.count += 1
        sweeps.share += min(swept.took_ns / swept.interval_ns, 1.0)
        if sweeps.count < SWEEPS_LOOKED_AT:
            return
        share = sweeps.share / sweeps.count
        self._sweeps[swept.tier] = Sweeps()
        if share > LARGEST_SHARE:
            self._change(min(2 * self.factor, SLOWEST), now_ns)
        elif share > CALM_SHARE or self._calm_since_ns is None:
            self._calm_since_ns = now_ns
        elif now_ns - self._calm_since_ns >= CALM_NS:
            self._change(max(self.factor // 2, 1), now_ns)

    def _change(self, factor: int, now_ns: int) -> None:
        self.factor = factor
        self._sweeps = {}
        self._calm_since_ns = now_ns


def within_budget(
    costs: Mapping[str, Mapping[Tier, float]], budget: float
) -> dict[str, dict[Tier, int]]:
    """A factor for each device and tier, by which its cost is divided, to keep to the budget.

    Slow sweeps are slowed first, so that outages are dated as sharply as before, and the
    dearest first. Where even the slowest pace of all is too dear, it stays so.
    """
    factors: dict[tuple[str, Tier], int] = {
        (device, tier): 1 for device in costs for tier in costs[device]
    }

    def cost(of: tuple[str, Tier]) -> float:
        device, tier = of
        return costs[device][tier] / factors[of]

    for tier in SLOWABLE:
        slowable = [of for of in factors if of[1] == tier and cost(of) > 0]
        while slowable and sum(map(cost, factors)) > budget:
            factors[max(slowable, key=lambda of: (cost(of), of))] *= 2
            slowable = [of for of in slowable if factors[of] < SLOWEST]
    return {
        device: {tier: factors[device, tier] for tier in tiers} for device, tiers in costs.items()
    }
