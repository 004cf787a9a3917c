"""Memory: the evidence that is kept, for as long as it may still matter, and no more of it."""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.incident.evidence import Evidence, Watched, begin_ns
from flapd.core.incident.scene import may_hit
from flapd.core.incident.story import ORDINARY, began_ns
from flapd.model.event import Outage
from flapd.model.fault import Fault
from flapd.model.job import Job
from flapd.model.port import Port
from flapd.model.stall import Stall
from flapd.model.standing import Standing
from flapd.model.times import SECOND_NS

MOST_FAULTS, MOST_OUTAGES, MOST_STALLS, MOST_JOBS = 2000, 1000, 500, 256
_MOST_EARLIER = 2000
_DAY_NS = 86400 * SECOND_NS

Item = Outage | Fault | Stall | Job


class Memory(msgspec.Struct):
    """Unix times throughout, but for when a port was read."""

    outages: dict[str, Outage] = {}
    faults: dict[str, Fault] = {}
    stalls: dict[str, Stall] = {}
    jobs: dict[str, Job] = {}
    standings: dict[str, tuple[Standing, ...]] = {}
    ports: dict[str, Port] = {}
    since_ns: dict[str, int] = {}
    """By port: since when its downs are known."""
    read_ns: dict[str, int] = {}
    """By port: when it was read last, monotonic."""
    earlier_downs: dict[str, list[int]] = {}
    """By port, of outages that are forgotten otherwise."""
    earlier_hits: dict[str, list[int]] = {}
    """By job, of primary errors and stalls that are forgotten otherwise."""

    def take(self, item: Item) -> set[str]:
        """The names of the jobs that it concerns; "" for none. Older revisions are no news."""
        if isinstance(item, Outage):
            return self._jobs_near(item) if _put(self.outages, item) else set()
        if isinstance(item, Stall):
            return {item.job} if _put(self.stalls, item) else set()
        if isinstance(item, Job):
            # Which ports it uses says of other jobs, and of none, what did not hit it.
            return self.names() if _put(self.jobs, item) else set()
        return self._take_fault(item)

    def _take_fault(self, fault: Fault) -> set[str]:
        before = self.faults.get(fault.id, fault)
        # What it says in words is in the history.
        if not _put(self.faults, replace(fault, text="")):
            return set()
        if any(one.job is None and one.hca is not None for one in (before, fault)):
            # It was, or is, of whatever job uses the port.
            return self.names()
        return {fault.job or "", before.job or ""}

    def _jobs_near(self, outage: Outage) -> set[str]:
        """Those that it may have hit, and those of which only symptoms are known."""
        known = {job.job for job in self.jobs.values()}
        hit = {job.job for job in self.jobs.values() if may_hit(outage, job)}
        return hit | (self.names() - known)

    def names(self) -> set[str]:
        """Of all jobs; "" for what has none."""
        named = {job.job for job in self.jobs.values()} | {one.job for one in self.stalls.values()}
        return {"", *named, *(fault.job or "" for fault in self.faults.values())}

    def pauses(self) -> set[str]:
        """Ids of stalls that a job takes for itself."""
        own = ("checkpoint", "evaluation", "start_up")
        return {stall.id for stall in self.stalls.values() if stall.stall_class in own}

    def evidence(
        self, node: str, now_ns: int, offset_ns: int, job: JobSettings, cost: CostSettings
    ) -> Evidence:
        return Evidence(
            node=node,
            now_ns=now_ns,
            outages=tuple(self.outages.values()),
            faults=tuple(self.faults.values()),
            stalls=tuple(self.stalls.values()),
            jobs=tuple(self.jobs.values()),
            standings=self.standings,
            ports=self.ports,
            watched={
                key: Watched(since_ns, self.read_ns[key] + offset_ns)
                for key, since_ns in self.since_ns.items()
                if key in self.read_ns
            },
            earlier_hits={name: tuple(hits) for name, hits in self.earlier_hits.items()},
            earlier_downs={key: tuple(starts) for key, starts in self.earlier_downs.items()},
            job=job,
            cost=cost,
        )

    def note_watched(self, offset_ns: int) -> None:
        """Ports that were read since the last time are watched from then on."""
        for key in self.read_ns.keys() - self.since_ns.keys():
            self.since_ns[key] = self.read_ns[key] + offset_ns

    def begin_boot(self) -> None:
        """What counted downs may have begun anew: nothing is known of the time between."""
        self.since_ns.clear()
        self.read_ns.clear()

    def forget(self, cutoff_ns: int, kept: Collection[str], dropped: Collection[str]) -> None:
        """What is older, but for these; and those others, whatever their age."""
        for outage in [*self.outages.values()]:
            if _goes(outage.id, begin_ns(outage), cutoff_ns, kept, dropped):
                self._forget_outage(outage)
        for fault in [*self.faults.values()]:
            if _goes(fault.id, fault.time_ns or 0, cutoff_ns, kept, dropped):
                self._forget_symptom(fault)
        for stall in [*self.stalls.values()]:
            if _goes(stall.id, stall.begin_unix_ns, cutoff_ns, kept, dropped):
                self._forget_symptom(stall)
        for job in [*self.jobs.values()]:
            if job.until_unix_ns is not None and job.until_unix_ns < cutoff_ns:
                del self.jobs[job.id]
        self._forget_earlier(cutoff_ns)
        names = self.names()
        self.standings = {name: one for name, one in self.standings.items() if name in names}

    def bound(self) -> None:
        """Of more than can be kept what matters least goes: what follows, then what is oldest."""
        order = sorted(self.faults.values(), key=lambda one: (one.primary, one.time_ns or 0))
        for fault in order[: max(0, len(order) - MOST_FAULTS)]:
            self._forget_symptom(fault)
        for outage in _oldest(self.outages.values(), MOST_OUTAGES):
            self._forget_outage(outage)
        stalls = sorted(self.stalls.values(), key=lambda one: one.begin_unix_ns)
        for stall in stalls[: max(0, len(stalls) - MOST_STALLS)]:
            self._forget_symptom(stall)
        jobs = sorted(self.jobs.values(), key=lambda one: one.until_unix_ns or one.since_unix_ns)
        for job in jobs[: max(0, len(jobs) - MOST_JOBS)]:
            del self.jobs[job.id]

    def _forget_outage(self, outage: Outage) -> None:
        del self.outages[outage.id]
        if outage.cause != "boot":
            self.earlier_downs.setdefault(outage.key, []).append(begin_ns(outage))

    def _forget_symptom(self, symptom: Fault | Stall) -> None:
        if isinstance(symptom, Stall):
            del self.stalls[symptom.id]
            is_hit = symptom.stall_class not in ORDINARY
        else:
            del self.faults[symptom.id]
            is_hit = symptom.primary and symptom.time_ns is not None
        if is_hit:
            self.earlier_hits.setdefault(symptom.job or "", []).append(began_ns(symptom))

    def _forget_earlier(self, cutoff_ns: int) -> None:
        self.earlier_downs = _recent(self.earlier_downs, cutoff_ns)
        self.earlier_hits = _recent(self.earlier_hits, cutoff_ns)


def _recent(times: Mapping[str, list[int]], cutoff_ns: int) -> dict[str, list[int]]:
    recent = {
        name: [ns for ns in starts if ns >= cutoff_ns - _DAY_NS][-_MOST_EARLIER:]
        for name, starts in times.items()
    }
    return {name: starts for name, starts in recent.items() if starts}


_Kept = TypeVar("_Kept", Outage, Fault, Stall, Job)


def _put(kept: dict[str, _Kept], item: _Kept) -> bool:
    """False where a higher revision is known."""
    known = kept.get(item.id)
    if known is not None and known.revision > item.revision:
        return False
    kept[item.id] = item
    return True


def _oldest(outages: Iterable[Outage], most: int) -> list[Outage]:
    order = sorted(outages, key=lambda one: (begin_ns(one), one.id))
    return order[: max(0, len(order) - most)]


def _goes(
    name: str, at_ns: int, cutoff_ns: int, kept: Collection[str], dropped: Collection[str]
) -> bool:
    return name in dropped or (at_ns < cutoff_ns and name not in kept)
