"""Judge: what a fleet's view tells of a simulated fleet, held against what is true of it."""

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.fleet import FleetView, Link, Peer, Topology
from flapd.model.fleet import Heartbeat, NodeEvent
from flapd.model.incident import Incident
from flapd.model.times import SECOND_NS
from simulators.cluster.fleet import Arrival, Fleet
from simulators.cluster.names import leaf_of, node_name, port_name
from simulators.cluster.spec import FleetSpec
from tests.system.fleet_cases import Case

LOOK_EVERY_SECONDS = 5.0
AFTERWARDS_SECONDS = 1800.0
BLAMED = ("caused", "likely")


class Heard(NamedTuple):
    at: float
    told: NodeEvent | Heartbeat


def heard(fleet: Fleet) -> Iterator[Heard]:
    """All that a hub hears while anything happens, in order of time; the stream drops doubles."""
    events = (Heard(one.at, one.event) for one in once(fleet.events()))
    beats = fleet.beats(fleet.spec.watched_from_seconds, fleet.end)
    yield from heapq.merge(events, (Heard(*one) for one in beats), key=lambda one: one.at)


def once(arrivals: Iterable[Arrival]) -> Iterator[Arrival]:
    """As the stream keeps them."""
    known: set[str] = set()
    for one in arrivals:
        if one.event.message_id not in known:
            known.add(one.event.message_id)
            yield one


def view_of(spec: FleetSpec) -> FleetView:
    return FleetView(spec.cluster, JobSettings(), CostSettings(), topology_of(spec))


def topology_of(spec: FleetSpec) -> Topology:
    return Topology(
        Link(
            peer=Peer(leaf_of(spec, node, port), str(node % spec.pod_nodes + 1)),
            node=node_name(node),
            port=port_name(port),
        )
        for node in range(spec.nodes)
        for port in range(spec.ports_per_node)
    )


def told_of(fleet: Fleet, all_heard: Iterable[Heard] | None = None) -> list[Incident]:
    """The last revision of each incident, once all is over."""
    view, spec = view_of(fleet.spec), fleet.spec
    latest: dict[str, Incident] = {}

    def look(at: float) -> None:
        now_ns = spec.origin_unix_ns + round(at * SECOND_NS)
        latest.update((one.id, one) for one in view.look(now_ns))

    looked = 0.0
    for at, told in heard(fleet) if all_heard is None else all_heard:
        if at >= looked + LOOK_EVERY_SECONDS:
            looked = at
            look(at)
        if isinstance(told, NodeEvent):
            view.hear(told)
        else:
            view.beat(told, spec.origin_unix_ns + round(at * SECOND_NS))
    begin = max(fleet.end, looked)
    for later in range(0, round(AFTERWARDS_SECONDS), 60):
        look(begin + later)
    gone = {name for one in latest.values() for name in one.supersedes}
    return [one for one in latest.values() if one.id not in gone]


class Judged(NamedTuple):
    """`wrong` is empty where all is right."""

    answer: str
    wrong: str


def judged(case: Case, told: list[Incident]) -> Judged:
    """What is said of what hurt jobs, and of links that hurt nobody."""
    hurt = [one for one in told if one.symptoms]
    answer = "+".join(sorted({one.verdict for one in hurt})) or "none"
    return Judged(answer, "; ".join(_faults_of(case, told)))


def _faults_of(case: Case, told: list[Incident]) -> Iterator[str]:
    blamed = {one.causes[0].flap: one for one in told if one.verdict in BLAMED and one.causes}
    truth = case.fleet.truth
    for link in truth.innocent:
        if link.id in blamed:
            yield f"{link.node}, which is innocent, is {blamed[link.id].verdict}"
    for story in case.by_links:
        found = {blamed[link.id].id: blamed[link.id] for link in story.links if link.id in blamed}
        if not found:
            yield f"nobody is blamed for what {story.links[0].node} did"
        elif len(found) > 1:
            yield f"what {story.links[0].node} did is told {len(found)} times"


def losses(told: list[Incident], job: str) -> list[Incident]:
    """That say that the job lost anything."""
    return [
        one
        for one in told
        if job in (one.job, *one.jobs)
        and one.gpu_seconds is not None
        and one.gpu_seconds.likely > 0
    ]
