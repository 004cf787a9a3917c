"""Book: what is kept of one port, between readings and over restarts."""

import msgspec

from flapd.core.fabric.episode import Episode
from flapd.core.fabric.naming import Names
from flapd.core.fabric.reasons import Reason
from flapd.core.fabric.tally import Tally
from flapd.core.fabric.witness import WitnessBook
from flapd.model.event import Outage
from flapd.model.times import Edge


class Book(msgspec.Struct):
    """What the ledger keeps of one port between readings and over restarts."""

    witness: WitnessBook = msgspec.field(default_factory=WitnessBook)
    before_ns: int = 0
    """Start of the last reading; one that began earlier only narrows."""
    read_until_ns: int = 0
    """End of the last reading, which may stand for several: the next one began later."""
    up: bool | None = None
    """As last read; None where what was read before does not go on."""
    up_before_ns: int = 0
    """Start of the last reading that told `up`."""
    ever_up: bool = False
    names: Names = msgspec.field(default_factory=Names)
    episode: Episode | None = None
    outages: dict[str, Outage] = msgspec.field(default_factory=dict)
    """By id: that of the episode, and those whose downs are not all counted."""
    past: Outage | None = None
    """The last that is over and counted: its reason may still come."""
    reasons: list[Reason] = msgspec.field(default_factory=list)
    """What was told not long ago, and may explain what is not known yet."""
    best_rate_mbps: int = 0
    """The fastest it was seen up at."""
    last_down: Edge | None = None
    last_down_ns: int | None = None
    ended_ns: int = 0
    """Down time of the flap that ended last (the middle of its interval)."""
    grace_until_ns: int = 0
    tally: Tally = msgspec.field(default_factory=Tally)

    @property
    def is_whole(self) -> bool:
        """Every outage that something refers to is there."""
        named = {debt.outage for debt in self.witness.debts}
        named |= {entry.outage for entry in self.tally.uncounted}
        if self.episode is not None:
            named.add(self.episode.outage)
        return named <= self.outages.keys()
