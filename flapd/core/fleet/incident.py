"""Fleet incidents: a story of one job, or of all that one cause hit, as it is told."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from flapd.core.fleet.explanation import explanation_of
from flapd.core.fleet.story import FleetStory
from flapd.core.fleet.sums import (
    mean_of_parts,
    mean_of_ranges,
    mean_of_regimes,
    mean_share,
    sum_of_counts,
    sum_of_ranges,
)
from flapd.core.fleet.topology import Topology
from flapd.core.incident.incidents import MOST_FLAPS, incident_of
from flapd.model.incident import Incident, Verdict

MOST_NODES = 256
"""What is told of one incident; those that flapped first."""
_MOST_CAUSES = 16
_MOST_SYMPTOMS = 64
_ORDER: tuple[Verdict, ...] = (
    "caused",
    "likely",
    "unknown",
    "coincident",
    "elsewhere",
    "not_fabric",
    "no_job",
)


def fleet_incident_of(story: FleetStory, topology: Topology) -> Incident:
    """Revision 0; what each job lost is in it once."""
    told = [incident_of(one) for one in story.stories]
    whole = told[0] if len(told) == 1 else _together(told)
    nodes = _nodes(story, whole)
    return replace(
        whole,
        id=story.id,
        node=nodes[0] if nodes else "",
        nodes=nodes[:MOST_NODES],
        jobs=tuple(dict.fromkeys(one.job for one in told if one.job is not None)),
        begin_unix_ns=story.begin_ns,
        end_unix_ns=_end_ns(story, whole),
        shared_cause=None if story.shared is None else story.shared.words,
        explanation=tuple(explanation_of(story, told, topology)),
        flap_gpu_seconds={} if story.shared else whole.flap_gpu_seconds,
        flaps=_flaps(story),
    )


def _end_ns(story: FleetStory, whole: Incident) -> int | None:
    return None if whole.end_unix_ns is None else max(whole.end_unix_ns, story.begin_ns)


def _together(told: Sequence[Incident]) -> Incident:
    """One cause that hit several jobs; what they lost is added up."""
    worst = min(told, key=lambda one: (_ORDER.index(one.verdict), -_gpu(one), one.id))
    is_open = any(one.open for one in told)
    ends = [one.end_unix_ns or 0 for one in told]
    causes = sorted(
        (cause for one in told for cause in one.causes),
        key=lambda cause: (-cause.probability, cause.flap, cause.symptom),
    )
    return replace(
        worst,
        job=_only([one.job for one in told if one.job is not None]),
        end_unix_ns=None if is_open else max(ends),
        open=is_open,
        blind_to=tuple(dict.fromkeys(one for each in told for one in each.blind_to)),
        regimes=mean_of_regimes(told),
        causes=tuple({one.flap: one for one in reversed(causes)}.values())[::-1][:_MOST_CAUSES],
        symptoms=tuple(one for each in told for one in each.symptoms)[:_MOST_SYMPTOMS],
        world_size=sum_of_counts([one.world_size for one in told]),
        affected_gpus=sum_of_counts([one.affected_gpus for one in told]),
        lost_seconds=mean_of_ranges(told),
        parts=mean_of_parts(told),
        assumed_share=mean_share(told),
        gpu_seconds=sum_of_ranges([one.gpu_seconds for one in told]),
        cost=sum_of_ranges([one.cost for one in told]),
        policy={} if len({one.job for one in told}) > 1 else worst.policy,
        advice=tuple(dict.fromkeys(one for each in told for one in each.advice)),
    )


def _gpu(incident: Incident) -> float:
    return 0.0 if incident.gpu_seconds is None else incident.gpu_seconds.likely


def _only(names: Iterable[str]) -> str | None:
    found = set(names)
    return found.pop() if len(found) == 1 else None


def _flaps(story: FleetStory) -> tuple[str, ...]:
    """Of what took many ports down at once the first of them, whether they hit a job or not."""
    shared = (one.id for one in (story.shared.outages if story.shared else ()))
    return tuple(dict.fromkeys([*shared, *story.outages]))[:MOST_FLAPS]


def _nodes(story: FleetStory, whole: Incident) -> tuple[str, ...]:
    """Those whose ports did it, then those of other ports, then those that tell of it."""
    flapped = (outage.node for one in story.stories for outage in one.outages)
    shared = (outage.node for outage in (story.shared.outages if story.shared else ()))
    told = (blame.symptom.node for one in story.stories for blame in one.blames)
    alike = (
        other.node
        for one in story.stories
        for others in one.scene.alike.values()
        for other in others
    )
    first = (cause.node for cause in whole.causes)
    return tuple(dict.fromkeys([*first, *flapped, *shared, *told, *alike]))
