"""Scenes: a job as all its nodes tell of it, ready to be judged as on one node."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import NamedTuple

from msgspec.structs import replace

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.fleet.aligned import AlignedOutages, fault_by, job_by, stall_by
from flapd.core.fleet.alike import as_one
from flapd.core.fleet.attempts import job_at, jobs_of
from flapd.core.fleet.memory import FleetMemory, place_of_node
from flapd.core.fleet.nodes import Nodes
from flapd.core.fleet.shared import Shared
from flapd.core.fleet.topology import Topology
from flapd.core.incident.evidence import Evidence, Watched, begin_ns, end_ns
from flapd.core.incident.scene import FOREVER_NS, Scene, is_beside, may_hit, scenes_of
from flapd.core.incident.terms import ETHERNET
from flapd.model.event import Outage
from flapd.model.fault import Fault
from flapd.model.job import Job
from flapd.model.port import Port
from flapd.model.stall import Stall

_MOST_ALIKE = 8
"""Of outages with one cause the first and the longest stand for all."""


class Around(NamedTuple):
    """What correlation needs besides the evidence of one job."""

    cluster: str
    memory: FleetMemory
    outages: AlignedOutages
    nodes: Nodes
    topology: Topology
    shared_of: Mapping[str, Shared]
    """By id of an outage."""
    job: JobSettings
    cost: CostSettings
    now_ns: int


class _Parts(NamedTuple):
    """Of one job."""

    jobs: list[Job]
    faults: list[Fault]
    stalls: list[Stall]


def scenes_of_job(name: str, around: Around) -> Iterator[Scene]:
    """One for each job of this name."""
    for parts in _parts(name, around):
        nodes = {job.node for job in parts.jobs} or _tellers(parts)
        if parts.faults or parts.stalls or parts.jobs:
            yield _scene(name, parts, _outages(parts.jobs, nodes, around), around)


def scenes_of_node(node: str, around: Around) -> Iterator[Scene]:
    """What has no job there: errors, and outages beside a job; mostly there is nothing."""
    memory, nodes = around.memory, around.nodes
    jobs = [job_by(nodes, job) for job in memory.jobs_on.at(node)]
    faults = [
        fault_by(nodes, fault)
        for fault in memory.faults.at(place_of_node(node))
        if fault.merged_into is None and _owner(fault, jobs, memory) is None
    ]
    outages = around.outages.at(node) if faults or jobs else ()
    if not faults:
        outages = [one for one in outages if is_beside(one, jobs)]
    if not faults and not outages:
        return
    evidence = replace(_evidence(around), outages=tuple(outages), jobs=tuple(jobs))
    evidence = replace(evidence, faults=tuple(as_one(faults, ()).faults))
    yield scenes_of(evidence, ())[-1]


def scene_of_shared(shared: Shared, around: Around) -> Scene:
    """What took many ports down and hit no job that is known of."""
    outages = _representatives(shared.outages)
    evidence = replace(_evidence(around), outages=tuple(outages))
    rest = scenes_of(evidence, ())[-1]
    return replace(rest, outages=tuple(outages), alone=frozenset(one.id for one in outages))


def _evidence(around: Around) -> Evidence:
    return Evidence(
        node=f"cluster {around.cluster}",
        now_ns=around.now_ns,
        job=around.job,
        cost=around.cost,
        is_fleet=True,
    )


def _parts(name: str, around: Around) -> list[_Parts]:
    memory, nodes = around.memory, around.nodes
    told = (job_by(nodes, job) for job in memory.jobs.at(name))
    jobs = [_over_with_the_rest(one, around) for one in jobs_of(told)]
    found = [_Parts(one, [], []) for one in jobs or [[]]]
    for fault in _faults(name, jobs, around):
        found[_place(jobs, fault.node, fault.time_ns or 0)].faults.append(fault)
    for stall in memory.stalls.at(name):
        aligned = stall_by(nodes, stall)
        found[_place(jobs, stall.node, aligned.begin_unix_ns)].stalls.append(aligned)
    return found


def _over_with_the_rest(jobs: list[Job], around: Around) -> list[Job]:
    """A node that died tells no end: where all that still speak told one, it is over there too."""
    ends = [job.until_unix_ns for job in jobs if job.until_unix_ns is not None]
    without = [job for job in jobs if job.until_unix_ns is None]
    if not ends or not all(around.nodes.is_silent(job.node, around.now_ns) for job in without):
        return jobs
    return [
        job if job.until_unix_ns is not None else replace(job, until_unix_ns=max(ends))
        for job in jobs
    ]


def _place(jobs: list[list[Job]], node: str, at_ns: int) -> int:
    return job_at(jobs, node, at_ns) if len(jobs) > 1 else 0


def _faults(name: str, jobs: list[list[Job]], around: Around) -> Iterator[Fault]:
    memory, nodes = around.memory, around.nodes
    for fault in memory.faults.at(name):
        if fault.merged_into is None:
            yield fault_by(nodes, fault)
    told = [job for one in jobs for job in one]
    for node in {job.node for job in told}:
        for fault in memory.faults.at(place_of_node(node)):
            if fault.merged_into is None and _owner(fault, told, memory) == name:
                yield replace(fault_by(nodes, fault), job=name)


def _owner(fault: Fault, jobs: Iterable[Job], memory: FleetMemory) -> str | None:
    """A counter of a port tells of the job that uses it."""
    key = memory.owner_key(fault)
    using = {job.job for job in jobs if job.node == fault.node and key in job.ports}
    return min(using, default=None)


def _tellers(parts: _Parts) -> set[str]:
    return {one.node for one in parts.faults} | {one.node for one in parts.stalls}


def _outages(jobs: Sequence[Job], nodes: Iterable[str], around: Around) -> list[Outage]:
    """Those that may have hit it, each once."""
    by_node: dict[str, list[Job]] = {}
    for job in jobs:
        by_node.setdefault(job.node, []).append(job)
    found: list[Outage] = []
    for node in nodes:
        told = around.outages.at(node)
        found += [one for one in told if not jobs or any(may_hit(one, j) for j in by_node[node])]
    return sorted(found, key=lambda one: (begin_ns(one), one.id))


def _scene(name: str, parts: _Parts, outages: list[Outage], around: Around) -> Scene:
    told = as_one(parts.faults, parts.stalls)
    suspects = _suspects(outages, around)
    evidence = replace(
        _evidence(around),
        outages=tuple(suspects),
        faults=tuple(told.faults),
        stalls=tuple(told.stalls),
        jobs=tuple(parts.jobs),
        ports={one.key: _port(one, around.nodes) for one in suspects},
        watched=dict(_watched(parts.jobs, around)),
    )
    symptoms = [*(one.id for one in parts.faults), *(one.id for one in parts.stalls)]
    found = {one: around.memory.other_cause(one) for one in symptoms}
    return replace(
        scenes_of(evidence, (name,))[0],
        alike=told.alike,
        other_causes={one: cause for one, cause in found.items() if cause is not None},
    )


def _suspects(outages: Iterable[Outage], around: Around) -> list[Outage]:
    """Of what went down together a few stand for all; both ends of one link are one."""
    alone: list[Outage] = []
    together: dict[str, list[Outage]] = {}
    for one in outages:
        shared = around.shared_of.get(one.id)
        if shared is None:
            alone.append(one)
        else:
            together.setdefault(shared.key, []).append(one)
    few = [one for bunch in together.values() for one in _representatives(bunch)]
    return [*_one_end(alone, around.topology), *few]


def _representatives(bunch: Sequence[Outage]) -> list[Outage]:
    """The bunch is in order of time."""
    if len(bunch) <= 2 * _MOST_ALIKE:
        return list(bunch)
    longest = nsmallest(_MOST_ALIKE, bunch, key=lambda one: (-(end_ns(one) or FOREVER_NS), one.id))
    return list({one.id: one for one in (*bunch[:_MOST_ALIKE], *longest)}.values())


def _one_end(outages: Sequence[Outage], topology: Topology) -> list[Outage]:
    """Two nodes that are wired to each other tell of one outage of their link."""
    kept: dict[tuple[str, str], list[Outage]] = {}
    found = []
    for one in outages:
        peer = topology.peer_of(one.node, one.port, one.guid)
        others = () if peer is None else kept.get((peer.switch, peer.port), ())
        if not any(_meet(one, other) for other in others):
            kept.setdefault((one.node, one.port), []).append(one)
            found.append(one)
    return found


def _meet(one: Outage, other: Outage) -> bool:
    ends = (end_ns(one) or FOREVER_NS, end_ns(other) or FOREVER_NS)
    return begin_ns(one) <= ends[1] and begin_ns(other) <= ends[0]


def _watched(jobs: Iterable[Job], around: Around) -> Iterator[tuple[str, Watched]]:
    for job in jobs:
        yield from around.memory.sight.watched(job.node, job.ports, around.nodes)


def _port(outage: Outage, nodes: Nodes) -> Port:
    """As far as anything here asks for it: its name, and whether its card may retry sooner."""
    device, _, number = outage.port.partition("/")
    layer = ETHERNET if nodes.is_ethernet(outage.node, outage.key) else ""
    return Port(outage.key, device, int(number) if number.isdecimal() else 1, layer)
