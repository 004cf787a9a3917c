"""Judge: what a fleet's view tells of a simulated fleet, held against what is true of it."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pytest

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.fleet import FleetView, Link, Peer, Topology
from flapd.core.incident.sayings import A_PAUSE, NOTHING
from flapd.model.fleet import Heartbeat, NodeEvent
from flapd.model.incident import Incident
from flapd.model.times import SECOND_NS
from flapd.serve.job_items import IncidentItem
from simulators.cluster.fleet import Arrival, Fleet
from simulators.cluster.names import leaf_of, node_name, port_name
from simulators.cluster.spec import FleetSpec
from tests.system.fleet_cases import Case

LOOK_EVERY_SECONDS = 5.0
AFTERWARDS_SECONDS = 1800.0
BLAMED = ("caused", "likely")
STALL_SHARE = 0.25
"""By which the likely loss of a stall may be off."""

AnyIncident = Incident | IncidentItem


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


def judged(case: Case, told: Sequence[AnyIncident]) -> Judged:
    """What is said of what hurt jobs, and of links that hurt nobody."""
    hurt = [one for one in told if one.symptoms]
    answer = "+".join(sorted({one.verdict for one in hurt})) or "none"
    return Judged(answer, "; ".join(_faults_of(case, told)))


def _faults_of(case: Case, told: Sequence[AnyIncident]) -> Iterator[str]:
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


def is_innocent_caused(case: Case, told: Iterable[AnyIncident]) -> bool:
    """What must never be said."""
    innocent = {link.id for link in case.fleet.truth.innocent}
    return any(
        one.verdict == "caused" and one.causes[0].flap in innocent for one in told if one.causes
    )


def assert_counted_once(case: Case, told: Sequence[AnyIncident]) -> None:
    """All GPUs of the job, for the time that it stood still, in one incident."""
    for story in case.by_links:
        ids = {link.id for link in story.links}
        blaming = [
            one
            for one in told
            if story.job in (one.job, *one.jobs)
            and blamed_loss(one) > 0
            and one.causes
            and one.causes[0].flap in ids
        ]
        assert len(blaming) <= 1, case
        for one in blaming:
            lost = blamed_loss(one)
            assert one.affected_gpus == story.world_size, case
            assert one.lost_seconds is not None
            assert one.lost_seconds.likely is not None
            likely = one.lost_seconds.likely * story.world_size
            assert lost == pytest.approx(likely, rel=0.01), case
            if story.kind == "stall":
                near = pytest.approx(story.gpu_seconds, rel=STALL_SHARE, abs=story.world_size)
                assert lost == near, case


def blamed_loss(incident: AnyIncident) -> float:
    """GPU-seconds, likely; 0 where no flap is blamed."""
    lost = incident.gpu_seconds
    if incident.verdict not in BLAMED or lost is None or lost.likely is None:
        return 0.0
    return lost.likely


def opinions(told: Iterable[AnyIncident]) -> dict[str, tuple[object, ...]]:
    """By id, without what was told of less and has turned out to be nothing."""
    return {one.id: _known(one) for one in told if not _is_withdrawn(one)}


def _is_withdrawn(incident: AnyIncident) -> bool:
    """It says so."""
    return not {A_PAUSE, NOTHING}.isdisjoint(incident.explanation)


def _known(incident: AnyIncident) -> tuple[object, ...]:
    """All but how often it was told, and what took the place of what on the way."""
    lost = incident.gpu_seconds
    return (
        incident.id,
        incident.verdict,
        incident.open,
        incident.node,
        tuple(incident.nodes),
        tuple(incident.jobs),
        incident.shared_cause,
        tuple(incident.symptoms),
        tuple((one.flap, round(one.probability, 6)) for one in incident.causes),
        None if lost is None else (lost.low, lost.likely, lost.high),
    )
