"""Explanation: what only who sees many nodes can tell of an incident."""

from collections.abc import Iterator, Sequence

from flapd.core.fleet.alike import lagging
from flapd.core.fleet.shared import Shared
from flapd.core.fleet.story import FleetStory
from flapd.core.fleet.topology import Topology
from flapd.core.incident.evidence import begin_ns
from flapd.core.incident.story import Story
from flapd.core.incident.words import amount, day_and_clock, listed, plural, seconds
from flapd.model.fault import Fault
from flapd.model.incident import Cause, Incident

_MOST_JOBS = 16
_MOST_PEERS = 4


def explanation_of(
    story: FleetStory, told: Sequence[Incident], topology: Topology
) -> Iterator[str]:
    """Sentences."""
    if story.shared is not None:
        yield _shared_sentence(story.shared)
    if len(told) == 1:
        yield from told[0].explanation
    else:
        yield from _jobs(told)
    if story.shared is None:
        yield from peers_told(told[0].causes, topology)
    yield from _lagging(story)


def _shared_sentence(shared: Shared) -> str:
    ports = f"{plural(shared.ports, 'port')} of {plural(shared.nodes, 'node')}"
    what = f"switch {shared.switch}" if shared.switch else "something that they share"
    return (
        f"{day_and_clock(begin_ns(shared.outages[0]))}: {ports} went down within "
        f"{seconds(shared.within_seconds)}: that is {what}, not {plural(shared.ports, 'cable')}."
    )


def _jobs(told: Sequence[Incident]) -> Iterator[str]:
    """Each with what it lost; the worst first."""
    ordered = sorted(told, key=lambda one: (-_gpu_seconds(one), one.job or "", one.id))
    for one in ordered[:_MOST_JOBS]:
        if one.job is not None:
            lost = f", lost {amount(_gpu_seconds(one))} GPU-seconds" if one.gpu_seconds else ""
            yield f"Job {one.job}: {one.verdict}{lost}."
    if len(ordered) > _MOST_JOBS:
        yield f"And {len(ordered) - _MOST_JOBS} more like these."


def _gpu_seconds(incident: Incident) -> float:
    return 0.0 if incident.gpu_seconds is None else incident.gpu_seconds.likely


def peers_told(causes: Sequence[Cause], topology: Topology) -> Iterator[str]:
    ports = dict.fromkeys((cause.node, cause.port, cause.key.partition("/")[0]) for cause in causes)
    for node, port, guid in list(ports)[:_MOST_PEERS]:
        peer = topology.peer_of(node, port, guid)
        if peer is not None:
            yield f"The other end of {port} of {node} is {peer}."


def _lagging(story: FleetStory) -> Iterator[str]:
    behind = lagging(fault for one in story.stories for fault in _errors(one))
    if behind:
        ranks = listed([str(rank) for rank in behind])
        yield f"Furthest behind, by what the ranks themselves tell: rank {ranks}."


def _errors(story: Story) -> Iterator[Fault]:
    for symptom in story.errors:
        yield symptom
        alike = story.scene.alike.get(symptom.id, ())
        yield from (one for one in alike if isinstance(one, Fault))
