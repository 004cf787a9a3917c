"""IncidentsView: what may be shown of incidents, published after each commit."""

import math

import msgspec

from flapd.core.cost.calibration import Retry
from flapd.model.incident import VERDICTS


class Claim(msgspec.Struct, frozen=True):
    """GPU-seconds that flaps of a port cost, by what they met."""

    likely: float = 0.0
    low: float = 0.0

    def __add__(self, other: "Claim") -> "Claim":
        return Claim(self.likely + other.likely, self.low + other.low)

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.likely) and math.isfinite(self.low)


class IncidentTotals(msgspec.Struct):
    """What was counted at the close of each incident; continues over restarts."""

    incidents: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    """By verdict."""
    claims: dict[str, dict[str, Claim]] = {}
    """By port, as it is written, and by regime; of causes on this node."""

    def copy(self) -> "IncidentTotals":
        claims = {port: dict(regimes) for port, regimes in self.claims.items()}
        return IncidentTotals(dict(self.incidents), claims)


class IncidentsView(msgspec.Struct, frozen=True):
    open: int = 0
    totals: IncidentTotals = msgspec.field(default_factory=IncidentTotals)
    retries: tuple[Retry, ...] = ()
    """What the timers of this node were measured to take."""
