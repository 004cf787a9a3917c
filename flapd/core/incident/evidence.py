"""Evidence: all that incidents are made of, as a set."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from flapd.core.cost.calibration import Retry
from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.model.event import Outage
from flapd.model.fault import Fault
from flapd.model.given import Given
from flapd.model.job import Job
from flapd.model.port import Port
from flapd.model.stall import Stall
from flapd.model.standing import Standing
from flapd.model.times import SECOND_NS


class Watched(msgspec.Struct, frozen=True):
    """Of this time all downs of a port are known.

    Gaps in between hide none, since its witness goes on counting. Unix time.
    """

    since_ns: int
    until_ns: int


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What one node knows, or a fleet does; of what is in it twice the highest revision counts.

    Faults are merged and judged. Where `now_ns` is None, nothing more will come.
    """

    node: str
    """Who puts this together; part of the ids of incidents."""
    now_ns: int | None = None
    """Unix time."""
    outages: tuple[Outage, ...] = ()
    faults: tuple[Fault, ...] = ()
    stalls: tuple[Stall, ...] = ()
    jobs: tuple[Job, ...] = ()
    standings: Mapping[str, tuple[Standing, ...]] = {}
    """By job; "" where it is not known whose they are."""
    ports: Mapping[str, Port] = {}
    """By key."""
    watched: Mapping[str, Watched] = {}
    """By key of the port; what is not in it cannot be seen."""
    earlier_downs: Mapping[str, tuple[int, ...]] = {}
    """By key, unix times of downs that are not among `outages` any more."""
    earlier_hits: Mapping[str, tuple[int, ...]] = {}
    """By job, unix times at which something hit it that is not among faults and stalls any more."""
    job: JobSettings = JobSettings()
    cost: CostSettings = CostSettings()
    retries: tuple[Retry, ...] = ()
    """What the timers of this node were measured to take."""
    is_fleet: bool = False
    """It is of many nodes, all that tell anything."""


_Item = TypeVar("_Item", Outage, Fault, Stall, Job)


def newest(items: Iterable[_Item]) -> list[_Item]:
    """The highest revision of each, in an order that depends on nothing else."""
    found: dict[str, _Item] = {}
    for item in items:
        known = found.get(item.id)
        if known is None or item.revision >= known.revision:
            found[item.id] = item
    return [found[name] for name in sorted(found)]


def begin_ns(outage: Outage) -> int:
    """The first moment at which it may have begun, unix time."""
    return outage.down.earliest_unix_ns


def end_ns(outage: Outage) -> int | None:
    """The last moment at which it may have ended, unix time; None: it goes on, or is lost."""
    return None if outage.up is None else outage.up.latest_unix_ns


def missing_seconds(outage: Outage, until_ns: int) -> Given[float]:
    """How long there was no path, of an outage that goes on: so far.

    Between the downs of a burst there is a path, but hardly ever a retry.
    """
    if outage.status == "lost":
        # When that was told nothing of it could be known any more.
        until_ns = max(outage.recorded_ns + outage.down.wall_offset_ns, outage.down.latest_unix_ns)
    if outage.up is None:
        longest = max(0.0, (until_ns - outage.down.earliest_unix_ns) / SECOND_NS)
        shortest = max(0.0, (until_ns - outage.down.latest_unix_ns) / SECOND_NS)
    else:
        longest = (outage.up.latest_unix_ns - outage.down.earliest_unix_ns) / SECOND_NS
        shortest = max(0.0, (outage.up.earliest_unix_ns - outage.down.latest_unix_ns) / SECOND_NS)
    value = (shortest + longest) / 2
    if outage.down_ns_min is not None and outage.count > 1:
        shortest = outage.down_ns_min / SECOND_NS
    return Given(value, min(shortest, value), max(longest, value), "measured")
