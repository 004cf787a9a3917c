"""What a watch of a job's stalls knows: all that a new one needs to go on."""

import msgspec

from flapd.core.job.stall.classify import Pause, Surroundings
from flapd.core.job.stall.period import Busy
from flapd.core.job.stall.rhythm import Rhythm
from flapd.core.job.stall.slowdown import Speed
from flapd.core.job.stall.traffic import PortTraffic
from flapd.model.stall import Stall


class Down(msgspec.Struct, frozen=True):
    """A port of this node that went down."""

    port: str
    earliest_ns: int
    latest_ns: int


class Unseen(msgspec.Struct, frozen=True, array_like=True):
    """What no port of the job told of its traffic between these two."""

    begin_ns: int
    end_ns: int


class WatchRecord(msgspec.Struct):
    """All that a watch knows; a new one goes on from it."""

    ports: dict[str, PortTraffic] = {}
    rhythm: Rhythm = msgspec.field(default_factory=Rhythm)
    busy: Busy = msgspec.field(default_factory=Busy)
    speed: Speed = msgspec.field(default_factory=Speed)
    silent_since_ns: int | None = None
    """The end of the last traffic on any port; None: there was none yet."""
    silent_unsure_ns: int = 0
    """So much before that the last traffic may have been: nobody looked in between."""
    first_ns: int | None = None
    """The begin of the first traffic; None: there was none yet, or the first was not seen."""
    period_ns: int | None = None
    period_at_ns: int = 0
    downs: list[Down] = []
    open: Stall | None = None
    pauses: list[Pause] = []
    surroundings: Surroundings = Surroundings()
    seen_until_ns: int | None = None
    """What its ports did is known up to here."""
    unseen: list[Unseen] = []
    """Since they were last taken from here."""
