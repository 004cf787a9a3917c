"""Verdict: what is said of a story as a whole, and what could not be seen."""

from collections.abc import Iterator

from flapd.core.incident.attempts import latest
from flapd.core.incident.blame import Blame, time_ns
from flapd.core.incident.evidence import end_ns
from flapd.core.incident.scene import Scene
from flapd.core.incident.story import Story
from flapd.core.incident.words import listed, plural
from flapd.core.spans import overlap
from flapd.model.fault import Fault
from flapd.model.incident import Verdict
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS

_STALE_NS = 3 * SECOND_NS
_LONGEST_TICK_SECONDS = 60.0
_SIGHTS = {
    "end": "when traffic came back",
    "processes": "whether processes of the job were alive",
    "gpus_busy": "whether the GPUs of this node waited or worked",
    "storage_busy": "whether the job wrote to storage",
    "retransmitting": "whether ports of this node retransmitted",
}


def verdict_of(story: Story) -> Verdict:
    decisive = story.decisive
    if decisive is None:
        return _of_flaps_alone(story)
    return decisive.verdict or _of_clean_ports(story)


def _of_clean_ports(story: Story) -> Verdict:
    if any(_unseen(one, story.scene) for one in story.blames):
        return "unknown"
    return "not_fabric" if is_seen_whole(story.scene) else "elsewhere"


def _of_flaps_alone(story: Story) -> Verdict:
    """Nobody told of a symptom: either there was none, or nobody would have seen it."""
    if story.scene.job is None:
        return "no_job"
    return "coincident" if would_show(story) else "unknown"


def would_show(story: Story) -> bool:
    """A stall of the job would have been seen in its traffic, and would be by now."""
    shortest = shortest_stall_seconds(story)
    if shortest is None or not story.scene.knows_ports or _was_unseen(story):
        return False
    if story.scene.evidence.now_ns is None:
        return True
    settled_ns = (shortest + 1) * SECOND_NS + _STALE_NS  # no end where the transport waits for ever
    return story.scene.until_ns >= story.begin_ns + settled_ns


def _was_unseen(story: Story) -> bool:
    """While the outages, or what would follow from them, went on."""
    scene = story.scene
    ends = [end_ns(one) or scene.until_ns for one in story.outages]
    tick_ns = round(min(scene.terms.tick_seconds, _LONGEST_TICK_SECONDS) * SECOND_NS)
    lasted = (story.begin_ns, max(ends, default=story.begin_ns) + tick_ns)
    nodes = {one.node for one in story.outages}
    unseen = (
        span for job in scene.jobs if job.node in nodes for span in job.traffic_unseen_unix_ns
    )
    return any(overlap(span, lasted) for span in unseen)


def shortest_stall_seconds(story: Story) -> float | None:
    """That would have been seen; None: none would."""
    nodes = {one.node for one in story.outages}
    found = [
        job.shortest_stall_seconds
        for job in story.scene.jobs
        if job.node in nodes
        and job.stalls_seen_since_unix_ns is not None
        and job.stalls_seen_since_unix_ns <= story.begin_ns
    ]
    known = [one for one in found if one is not None]
    return max(known) if known else None


def _unseen(blame: Blame, scene: Scene) -> list[str]:
    """Ports of the job whose downs are not known over the whole window."""
    at_ns = time_ns(blame.symptom)
    first_ns = at_ns - round(blame.window.high * SECOND_NS)
    last_ns = min(at_ns - round(blame.window.low * SECOND_NS), scene.until_ns - _STALE_NS)
    watched = scene.evidence.watched
    return [
        key
        for key in sorted(scene.keys or {"none of its ports is known"})
        if key not in watched or watched[key].since_ns > first_ns or watched[key].until_ns < last_ns
    ]


def blind_to(story: Story) -> tuple[str, ...]:
    """In words, each once."""
    return tuple(dict.fromkeys(_blind(story)))


def _blind(story: Story) -> Iterator[str]:
    scene = story.scene
    for job in scene.jobs:
        yield from job.blind_to
    if scene.job is not None and not scene.knows_ports:
        yield "which ports the job uses"
    unseen = sorted({key for one in story.blames for key in _unseen(one, scene)})
    if unseen:
        yield f"downs of {_ports(unseen, scene)}"
    for stall in story.stalls:
        yield from (_SIGHTS.get(one, one) for one in stall.blind_to)
    if not story.blames and scene.job is not None and not would_show(story):
        yield "the traffic of the job: whether it stood still"
    if _is_open_question(story) and not is_all_here(scene):
        yield "ports of the job's other nodes"
    elif _is_open_question(story) and not is_seen_whole(scene):
        yield "links between switches"


def _ports(keys: list[str], scene: Scene) -> str:
    ports = scene.evidence.ports
    if not scene.evidence.is_fleet:
        return ", ".join(ports[key].name if key in ports else key for key in keys)
    node_of = {key: job.node for job in scene.jobs for key in job.ports}
    nodes = sorted({node_of.get(key, "an unknown node") for key in keys})
    return f"{plural(len(keys), 'port')} of {listed(nodes)}"


def _is_open_question(story: Story) -> bool:
    decisive = story.decisive
    return decisive is not None and decisive.verdict not in ("caused", "not_fabric")


def is_all_here(scene: Scene) -> bool:
    """No rank is on a node that nobody here sees."""
    world = scene.terms.world_size
    return world is not None and sum(job.gpus for job in latest(scene.jobs)) >= world


def is_seen_whole(scene: Scene) -> bool:
    """All links that the job uses begin on one node, whose ports are seen, and end there."""
    return is_all_here(scene) and len({job.node for job in scene.jobs}) == 1


def death_of(story: Story) -> Fault | None:
    """The error that ended the job, as far as it was seen: the nearest to the cause.

    A counter of a port tells of no end; nor does the transport where nobody hands its errors on.
    """
    errors = [one for one in story.errors if one.kind != "counter"]
    if not story.scene.terms.inputs.coordinated.value:
        told = [*errors, *story.followers]
        errors = [one for one in told if one.kind == "watchdog_timeout"] or errors
    order = {"transport_error": 0, "fatal_event": 0, "nccl_error": 1, "watchdog_timeout": 2}
    return min(errors, key=lambda one: (order.get(one.kind, 3), time_ns(one), one.id), default=None)


def died_ns(story: Story) -> int | None:
    """When it was told or seen that the job had ended; None: it was not."""
    death = death_of(story)
    if death is not None:
        return time_ns(death)
    cut_off = (stall for stall in story.stalls if story.scene.was_cut_off(stall))
    return max((stall.end_unix_ns or 0 for stall in cut_off), default=None)


def resumed(story: Story) -> bool:
    """All stalls that were seen are over, and some were."""
    scene = story.scene
    return bool(story.stalls) and not any(scene.never_ended(stall) for stall in story.stalls)


def was_cut_off(story: Story) -> bool:
    """The job was over before its traffic came back, whether or not anybody said why."""
    return any(story.scene.was_cut_off(stall) for stall in story.stalls)


def last_stall(story: Story) -> Stall | None:
    return max(story.stalls, key=lambda one: (one.begin_unix_ns, one.id), default=None)
