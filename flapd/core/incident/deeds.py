"""Deeds: the chance that a flap brings a symptom (pi), and how often one comes without (mu0)."""

import math

from msgspec.structs import replace

from flapd.core.cost.bounds import lost_range
from flapd.core.cost.budget import death_probability
from flapd.core.incident.evidence import missing_seconds
from flapd.core.incident.scene import LONGEST_OPEN_NS, Scene
from flapd.core.incident.starts import FAILED_STARTS_PER_SECOND, is_of_start
from flapd.core.incident.windows import SOONEST, UNUSUAL, lag_of, window_of_stall
from flapd.model.event import Outage
from flapd.model.fault import Fault
from flapd.model.given import default
from flapd.model.loss import Range
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS

_OTHERS_PER_SECOND = 1 / (7.9 * 3600)
"""Jobs of 1,024 GPUs die that often (Kokolis et al., arXiv 2410.21680)."""
_USUAL_GPUS = 1024
_OTHER_PORT = 0.8
"""Of the node of the rank that reports."""
_IDLE_PORT = 0.1
"""Without traffic of the job when it stopped."""
_LONG_PAUSE = 1.25
"""So much longer than usual an ordinary pause may be."""
_NO_LINK = 0.001
"""Where the stall did not come with a link."""
_NO_RETURN = 0.9
"""A flap after which the queue pair cannot go on kills whatever its length."""
_MISFIT = 0.001
"""A stall that ends neither with the path nor with a death."""
_GID_WITHIN_NS = 60 * SECOND_NS
_DAY_NS, _SHORTEST_SECONDS = 86400 * SECOND_NS, 3600.0


def kills_so(fault: Fault, outage: Outage, scene: Scene) -> float:
    """The chance (pi) that a flap of this length ends the job, and this rank."""
    assert fault.time_ns is not None
    kills = deadly(outage, scene, fault.time_ns)
    return kills * _topology(fault, outage) * _stopped_traffic(fault, outage, scene)


def _stopped_traffic(fault: Fault, outage: Outage, scene: Scene) -> float:
    """Where the job was seen to stand still until the error, the flap was there when it began."""
    fits = [
        _carried(stall, outage, scene) if _is_at_begin(outage, stall) else _NO_LINK
        for stall in scene.stalls
        if stall.begin_unix_ns <= (fault.time_ns or 0) <= (stall.end_unix_ns or scene.until_ns)
    ]
    return max(fits, default=1.0)


def _is_at_begin(outage: Outage, stall: Stall) -> bool:
    window = window_of_stall(stall)
    lag = lag_of(stall.begin_unix_ns, outage)
    return window.low <= lag[1] and lag[0] <= window.high


def stalls_so(stall: Stall, outage: Outage, scene: Scene) -> float:
    """The chance (pi) that the port carried traffic and what follows lasts so long."""
    kills = deadly(outage, scene, stall.begin_unix_ns)
    waits = ends_with(stall, outage, scene)
    dies = _may_be_a_death(stall, outage, scene)
    return _carried(stall, outage, scene) * max((1 - kills) * waits + kills * dies, _MISFIT)


def deadly(outage: Outage, scene: Scene, at_ns: int) -> float:
    """The chance that the flap kills, by its length; of one that goes on: as far as is known."""
    until_ns = max(at_ns, min(scene.until_ns, at_ns + LONGEST_OPEN_NS))
    seconds = missing_seconds(outage, until_ns).value
    budget = scene.terms.budget
    hands_on = scene.terms.inputs.coordinated.value
    kills = death_probability(seconds, budget)
    # Without a retry timer what was lost on the way is never sent again.
    no_return = math.isinf(budget.nominal) or _changed_gid(outage, scene)
    if seconds > 0 and (no_return or (not hands_on and seconds > budget.nominal)):
        return max(kills, _NO_RETURN)
    return kills


def _changed_gid(outage: Outage, scene: Scene) -> bool:
    down_ns = outage.down.earliest_unix_ns
    return any(
        fault.hca is not None
        and outage.port == f"{fault.hca}/{fault.port or 1}"
        and down_ns <= (fault.time_ns or 0) <= down_ns + _GID_WITHIN_NS
        for fault in scene.gid_changes
    )


def _topology(fault: Fault, outage: Outage) -> float:
    """Nothing says which port a rank uses, unless it names it; all ranks time out together."""
    if fault.hca is None or outage.node != fault.node:
        return 1.0
    return 1.0 if outage.port.partition("/")[0] == fault.hca else _OTHER_PORT


def _carried(stall: Stall, outage: Outage, scene: Scene) -> float:
    """The port carried the job's traffic when it went down.

    Of a node's own ports the watch of its traffic knows better: it has all its pauses.
    """
    seen = scene.as_seen_on(outage.node, stall)
    if seen is None:
        return 1.0
    stall = seen
    if stall.stall_class != "local_link":
        return _IDLE_PORT if _is_in_a_pause(outage, stall) else _NO_LINK
    return 1.0 if outage.key in stall.ports else _IDLE_PORT


def ends_with(stall: Stall, outage: Outage, scene: Scene) -> float:
    """How well it fits that traffic came back at the next retry after the path, or still may.

    That retry comes within one interval, wherever its phase is; rarely within four.
    """
    if scene.was_cut_off(stall):
        return 0.0
    if outage.up is None:
        return 1.0 if stall.end_ns is None else 0.0
    resume = resume_seconds(outage, scene)
    tolerance = max(0.2, 0.1 * resume.likely) + stall.resolution_ns / SECOND_NS
    end_ns = stall.end_unix_ns
    shortest, longest = lag_of(scene.until_ns if end_ns is None else end_ns, outage)
    if end_ns is not None and longest < resume.low - tolerance:
        return 0.0
    unseen = stall.end_unseen_ns / SECOND_NS
    late = shortest - unseen - tolerance - stall.expected_seconds
    if late <= missing_seconds(outage, scene.until_ns).high + scene.terms.tick_seconds:
        return 1.0
    return UNUSUAL if late <= resume.high else 0.0


def resume_seconds(outage: Outage, scene: Scene) -> Range:
    """From the down to the next traffic, if nobody gives up before."""
    inputs = replace(
        scene.terms.inputs,
        down_seconds=missing_seconds(outage, scene.until_ns),
        slack_seconds=default(0.0, 0.0, 0.0),
    )
    return lost_range("absorbed", inputs, scene.terms.budget)[0]


def _may_be_a_death(stall: Stall, outage: Outage, scene: Scene) -> bool:
    """It goes on, or lasted until the job can have been started again."""
    inputs = scene.terms.inputs
    least = SOONEST * scene.terms.budget.low + inputs.restart_seconds.low
    end_ns = stall.end_unix_ns
    if end_ns is None or scene.was_cut_off(stall):
        return True
    return (end_ns - outage.down.earliest_unix_ns) / SECOND_NS >= least


def others_per_second(symptom: Fault | Stall, scene: Scene) -> float:
    """mu0: how often such a symptom comes without a flap.

    Software fails in small jobs as well: they are not taken to be safer than one of 1,024 GPUs. A
    stall that goes on may be a death. A job that is connecting fails for more reasons.
    """
    if isinstance(symptom, Stall) and not scene.never_ended(symptom):
        return _stalls_per_second(symptom, scene)
    gpus = max(scene.terms.world_size or _USUAL_GPUS, _USUAL_GPUS)
    others = _OTHERS_PER_SECOND * gpus / _USUAL_GPUS
    return others + FAILED_STARTS_PER_SECOND if is_of_start(symptom, scene) else others


def _is_in_a_pause(outage: Outage, stall: Stall) -> bool:
    """It began while traffic paused as it always does, and may have kept it from going on."""
    usual = _LONG_PAUSE * stall.expected_seconds + stall.resolution_ns / SECOND_NS
    soonest, latest = lag_of(stall.begin_unix_ns, outage)
    return soonest <= 0 and latest >= -usual


def _stalls_per_second(stall: Stall, scene: Scene) -> float:
    """Of stalls at least half as long that no link explains, in the last day of the job."""
    at_ns = stall.begin_unix_ns
    since_ns = max(at_ns - _DAY_NS, min((job.since_unix_ns for job in scene.jobs), default=at_ns))
    length = _seconds_so_far(stall, scene)
    others = sum(
        since_ns <= one.begin_unix_ns < at_ns
        and one.stall_class not in ("local_link", "checkpoint", "evaluation")
        and _seconds_so_far(one, scene) >= length / 2
        for one in scene.stalls
    )
    span = max((at_ns - since_ns) / SECOND_NS, _SHORTEST_SECONDS)
    return (others + 0.5) / span


def _seconds_so_far(stall: Stall, scene: Scene) -> float:
    end_ns = stall.end_unix_ns
    end_ns = scene.until_ns if end_ns is None else end_ns
    return max(0, end_ns - stall.begin_unix_ns) / SECOND_NS
