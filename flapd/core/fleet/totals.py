"""FleetTotals: what was counted of a fleet's incidents."""

import math
from collections.abc import Container, Iterable

import msgspec

from flapd.core.incident.losses import BLAMED
from flapd.model.incident import VERDICTS, Incident
from flapd.model.loss import REGIMES


class FleetTotals(msgspec.Struct):
    """What was counted of each incident, once; continues over restarts."""

    incidents: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    """By verdict, that of its close."""
    gpu_seconds: dict[str, float] = msgspec.field(
        default_factory=lambda: dict.fromkeys(REGIMES, 0.0)
    )
    """By regime: what jobs lost by flaps that are blamed for it."""
    otherwise: dict[str, float] = msgspec.field(default_factory=dict)
    """What is in `gpu_seconds` of incidents that say something else now, by their ids."""

    def count(self, incident: Incident) -> None:
        """One that is over, but for its loss."""
        self.incidents[incident.verdict] += 1


class CountedLosses:
    """How much of each incident's loss is in the totals.

    It is counted at the close. What is heard of it later, as after a network was cut, may blame a
    flap for the first time, or for more: then the rest is counted. A counter never goes back.
    """

    def __init__(self, totals: FleetTotals) -> None:
        self._totals = totals
        self._counted: dict[str, float] = {}
        """By id of each incident that was over at some time, without what it took in."""
        self._took_in: dict[str, tuple[str, ...]] = {}
        """By id, those that it supersedes."""

    def restore(self, told: Iterable[Incident]) -> None:
        """As they were told last, with these totals; with those that others took in."""
        known = {one.id: one for one in told}
        self._took_in = {name: one.supersedes for name, one in known.items()}
        within = {name: self._within(name) for name in known}
        for name in sorted(known, key=lambda one: len(within[one])):
            if not known[name].open:
                others = sum(self._counted.get(other, 0.0) for other in within[name])
                self._counted[name] = max(0.0, blamed_loss(known[name]) - others)
        self._counted |= self._totals.otherwise

    def is_counted(self, incident_id: str) -> bool:
        return incident_id in self._counted

    def take(self, incident: Incident) -> None:
        """A new revision."""
        name, otherwise = incident.id, self._totals.otherwise
        self._took_in[name] = incident.supersedes
        own = self._counted.get(name, 0.0)
        if incident.open:
            if name in self._counted:
                otherwise[name] = own
            return
        others = sum(self._counted.get(other, 0.0) for other in self._within(name))
        says = max(0.0, blamed_loss(incident) - others)
        self._counted[name] = max(own, says)
        if incident.regime is not None:
            self._totals.gpu_seconds[incident.regime] += self._counted[name] - own
        if self._counted[name] > says:
            otherwise[name] = self._counted[name]
        else:
            otherwise.pop(name, None)

    def _within(self, name: str) -> set[str]:
        """All that it took in, by however many steps."""
        found, left = set[str](), [name]
        while left:
            new = [one for one in self._took_in.get(left.pop(), ()) if one not in found]
            found.update(new)
            left += new
        return found - {name}

    def forget(self, kept: Container[str]) -> None:
        """All but these."""
        for known in (self._counted, self._took_in, self._totals.otherwise):
            for name in [one for one in known if one not in kept]:
                del known[name]


def blamed_loss(incident: Incident) -> float:
    """GPU-seconds, likely; 0 where no flap is blamed, or nobody can say."""
    lost = incident.gpu_seconds
    if incident.verdict not in BLAMED or incident.regime is None or lost is None:
        return 0.0
    return lost.likely if math.isfinite(lost.likely) else 0.0
