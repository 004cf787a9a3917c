"""FleetMemory: what the nodes told, by where it belongs: to a job, or to none on some node."""

from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from flapd.core.fleet.shelf import Shelf
from flapd.core.fleet.sight import Sight
from flapd.core.incident.evidence import begin_ns, end_ns
from flapd.model.event import Event, Outage, PortChange
from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.model.job import Job
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS

MOST_SKEW_NS = 3600 * SECOND_NS
"""Clocks are not further apart than that when it is asked what an outage may concern."""
_FOREVER_NS = 1 << 62
NODE_PLACE = "\0"
"""Begins the places of what has no job; no job has such a name."""


class _Finding(NamedTuple):
    """What a node's own incident tells that only the node can see."""

    revision: int
    symptoms: tuple[str, ...]
    other_cause: str | None


def place_of_node(node: str) -> str:
    return f"{NODE_PLACE}{node}"


def _place_of_fault(fault: Fault) -> str:
    return place_of_node(fault.node) if fault.job is None else fault.job


class FleetMemory:
    def __init__(self) -> None:
        self.outages: Shelf[Outage] = Shelf(lambda outage: outage.node)
        self.faults: Shelf[Fault] = Shelf(_place_of_fault)
        self.stalls: Shelf[Stall] = Shelf(lambda stall: stall.job)
        self.jobs: Shelf[Job] = Shelf(lambda job: job.job)
        self.jobs_on: Shelf[Job] = Shelf(lambda job: job.node)
        self.sight = Sight()
        self._names_on: dict[str, set[str]] = {}
        """By node: the jobs that it ever told of."""
        self._keys: dict[tuple[str, str], str] = {}
        """By node and name of a port."""
        self._findings: dict[str, _Finding] = {}
        self._other_causes: dict[str, dict[str, str]] = {}
        """By a symptom's id and that of the incident that tells it."""

    def take(self, event: Event) -> Iterable[str]:
        """The places where something is new."""
        self.sight.take(event)
        if isinstance(event, Outage):
            self._keys[event.node, event.port] = event.key
            is_news = self.outages.put(event) is not None
            return self._near(event) if is_news else ()
        if isinstance(event, Fault):
            return self._take_fault(event)
        if isinstance(event, Stall):
            self._names_on.setdefault(event.node, set()).add(event.job)
            return () if self.stalls.put(event) is None else (event.job,)
        if isinstance(event, Job):
            return self._take_job(event)
        if isinstance(event, PortChange):
            self._keys[event.node, event.port] = event.key
            return ()
        # A fleet's own incidents are made of all this, and no evidence.
        return () if event.nodes else self.take_finding(event)

    def _take_fault(self, fault: Fault) -> Iterable[str]:
        # What it says in words is in the history.
        before = self.faults.put(replace(fault, text=""))
        if before is None:
            return ()
        if fault.job is not None:
            self._names_on.setdefault(fault.node, set()).add(fault.job)
        places = {_place_of_fault(before), _place_of_fault(fault)}
        if fault.job is None and fault.hca is not None:
            # It is of whatever job uses the port.
            places |= self._names_on.get(fault.node, set())
        return places

    def _take_job(self, job: Job) -> Iterable[str]:
        self._names_on.setdefault(job.node, set()).add(job.job)
        self.jobs_on.put(job)
        return () if self.jobs.put(job) is None else (job.job, place_of_node(job.node))

    def take_finding(self, incident: Incident) -> Iterable[str]:
        """Of an incident what its node alone can have seen."""
        known = self._findings.get(incident.id)
        if known is not None and known.revision >= incident.revision:
            return ()
        for symptom in () if known is None else known.symptoms:
            self._other_causes.get(symptom, {}).pop(incident.id, None)
        told = incident.another_cause
        symptoms = () if told is None else incident.symptoms
        self._findings[incident.id] = _Finding(incident.revision, symptoms, told)
        for symptom in symptoms:
            self._other_causes.setdefault(symptom, {})[incident.id] = told or ""
        is_news = told is not None or (known is not None and known.other_cause is not None)
        return (incident.job,) if is_news and incident.job is not None else ()

    def _near(self, outage: Outage) -> Iterator[str]:
        """Jobs that it may have hit, those of which only symptoms are known, and its node."""
        first_ns = begin_ns(outage) - MOST_SKEW_NS
        last_ns = (end_ns(outage) or _FOREVER_NS) + MOST_SKEW_NS
        known = set()
        for job in self.jobs_on.at(outage.node):
            known.add(job.job)
            until_ns = job.until_unix_ns or _FOREVER_NS
            if job.since_unix_ns <= last_ns and first_ns <= until_ns:
                yield job.job
        yield from self._names_on.get(outage.node, set()) - known
        yield place_of_node(outage.node)

    def near(self, name: str) -> Iterable[str]:
        """Where the outage of this id matters."""
        return self._near(self.outages.items[name])

    def places_of(self, node: str) -> set[str]:
        """All where anything of this node matters."""
        return {place_of_node(node), *self._names_on.get(node, ())}

    def owner_key(self, fault: Fault) -> str | None:
        """The port that a fault without a job tells of; None: it tells of none."""
        if fault.hca is None:
            return None
        return self._keys.get((fault.node, f"{fault.hca}/{fault.port or 1}"))

    def note_port(self, node: str, port: str, key: str) -> None:
        self._keys[node, port] = key

    def other_cause(self, symptom: str) -> str | None:
        """What the node that told it found to have done it; None: nothing."""
        return min(self._other_causes.get(symptom, {}).values(), default=None)

    def dated_ns(self, name: str) -> int | None:
        """When it began by its own node's clock; None: it is forgotten."""
        if (outage := self.outages.items.get(name)) is not None:
            return begin_ns(outage)
        if (stall := self.stalls.items.get(name)) is not None:
            return stall.begin_unix_ns
        fault = self.faults.items.get(name)
        return None if fault is None else fault.time_ns or 0

    def forget(self, cutoff_ns: int, kept: Container[str]) -> list[str]:
        """What is older, but for these; the ids of what that was."""
        forgotten = []
        for shelf in (self.outages, self.faults, self.stalls):
            for name in [*shelf.items]:
                if name not in kept and (self.dated_ns(name) or 0) < cutoff_ns:
                    shelf.remove(name)
                    forgotten.append(name)
        for job in [*self.jobs.items.values()]:
            if job.until_unix_ns is not None and job.until_unix_ns < cutoff_ns:
                self.jobs.remove(job.id)
                self.jobs_on.remove(job.id)
                forgotten.append(job.id)
        if forgotten:
            self._forget_names()
        return forgotten

    def _forget_names(self) -> None:
        """Findings about what is forgotten, and jobs of which nothing is left."""
        self._findings = {
            name: one
            for name, one in self._findings.items()
            if any(self.dated_ns(symptom) is not None for symptom in one.symptoms)
        }
        self._other_causes = {
            symptom: told
            for symptom, told in self._other_causes.items()
            if self.dated_ns(symptom) is not None
        }
        left = {*self.jobs.places(), *self.stalls.places(), *self.faults.places()}
        names_on = {node: names & left for node, names in self._names_on.items()}
        self._names_on = {node: names for node, names in names_on.items() if names}

    def youngest_ns(self, most: int) -> int:
        """Since when there are no more than so many things."""
        names = [*self.outages.items, *self.faults.items, *self.stalls.items]
        if len(names) <= most:
            return 0
        return sorted(self.dated_ns(name) or 0 for name in names)[-most]

    def is_forgotten(self, event: Event, cutoff_ns: int) -> bool:
        """It is of a time that nothing is known of any more."""
        if isinstance(event, Job):
            until_ns, known = event.until_unix_ns, self.jobs.items
            return event.id not in known and until_ns is not None and until_ns < cutoff_ns
        if not isinstance(event, Outage | Stall | Fault) or _began_ns(event) >= cutoff_ns:
            return False
        return self.dated_ns(event.id) is None


def _began_ns(item: Outage | Stall | Fault) -> int:
    if isinstance(item, Outage):
        return begin_ns(item)
    return item.begin_unix_ns if isinstance(item, Stall) else item.time_ns or 0
