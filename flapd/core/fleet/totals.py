"""FleetTotals: what was counted of a fleet's incidents."""

import math

import msgspec

from flapd.core.incident.losses import BLAMED
from flapd.model.incident import VERDICTS, Incident
from flapd.model.loss import REGIMES


class FleetTotals(msgspec.Struct):
    """What was counted at the close of each incident, once; continues over restarts."""

    incidents: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    """By verdict."""
    gpu_seconds: dict[str, float] = msgspec.field(
        default_factory=lambda: dict.fromkeys(REGIMES, 0.0)
    )
    """By regime: what jobs lost by flaps that are blamed for it."""

    def count(self, incident: Incident) -> None:
        self.incidents[incident.verdict] += 1
        lost = incident.gpu_seconds
        if incident.verdict not in BLAMED or incident.regime is None or lost is None:
            return
        if math.isfinite(lost.likely):
            self.gpu_seconds[incident.regime] += lost.likely
