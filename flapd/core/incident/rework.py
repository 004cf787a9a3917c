"""Rework: how much work a death undid, by what the traffic showed of the job's checkpoints.

The clock of checkpoints starts anew with each attempt: flaps that come at a fixed period find it at
the same place each time, and half an interval is right only on average.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from flapd.core.incident.attempts import running_at
from flapd.core.incident.scene import Scene
from flapd.core.spans import Span, union
from flapd.model.given import Given, exactly
from flapd.model.job import Job
from flapd.model.stall import StallClass
from flapd.model.times import SECOND_NS

_PERHAPS: frozenset[StallClass] = frozenset({"unknown", "start_up", "this_node"})
"""A pause of these is a checkpoint where it comes when one is due."""
_NEAR = 0.1
"""Of the interval: jobs save at the end of a step."""
_ENOUGH_ALIKE = 2


def checkpoint_age(scene: Scene, stopped_ns: int) -> Given[float]:
    """Seconds of work since the last checkpoint of a job that stopped then, and died of it.

    Never more than its attempt had done.
    """
    usual = scene.terms.inputs.checkpoint_age_seconds
    jobs = running_at(scene.jobs, stopped_ns)
    if not jobs:
        return usual
    first_ns = _first_traffic_ns(jobs)
    began_ns = min(job.since_unix_ns for job in jobs) if first_ns is None else first_ns
    done, interval = _worked(scene, began_ns, stopped_ns), _interval(scene)
    saved_ns = _saved_ns(scene, (began_ns, stopped_ns), interval)
    if saved_ns is not None:
        return _since_saved(_worked(scene, saved_ns, stopped_ns), interval)
    if interval is not None and first_ns is not None:
        # What pauses so little that none was seen delays the next by as little.
        return _in_phase(done, interval)
    return _at_most(usual, done)


def _since_saved(age: float, interval: Given[float] | None) -> Given[float]:
    """Where another one was due since then, it did not pause the job for long."""
    is_last = interval is None or age <= (1 + _NEAR) * interval.value
    return exactly(age, "measured") if is_last or interval is None else _in_phase(age, interval)


def _in_phase(seconds: float, interval: Given[float]) -> Given[float]:
    most = min(seconds, interval.value)
    return Given(seconds % interval.value, 0.0, most, interval.source)


def _at_most(usual: Given[float], done: float) -> Given[float]:
    return replace(
        usual, value=min(usual.value, done), low=min(usual.low, done), high=min(usual.high, done)
    )


def _first_traffic_ns(jobs: list[Job]) -> int | None:
    seen = (job.traffic_since_unix_ns for job in jobs)
    return min((at for at in seen if at is not None), default=None)


def _worked(scene: Scene, begin_ns: int, end_ns: int) -> float:
    """Seconds in which it did not stand still."""
    still = ((one.begin_unix_ns, one.end_unix_ns or end_ns) for one in scene.stalls)
    within = ((max(begin, begin_ns), min(end, end_ns)) for begin, end in still)
    stood_ns = sum(end - begin for begin, end in union(one for one in within if one[0] < one[1]))
    return max(0, end_ns - begin_ns - stood_ns) / SECOND_NS


def _interval(scene: Scene) -> Given[float] | None:
    """Between two checkpoints: as configured, else as pauses came in its attempts."""
    usual = scene.terms.inputs.checkpoint_age_seconds
    if not usual.is_assumed:
        return replace(usual, value=usual.high)
    found = sorted(_spacings(scene))
    middle = found[len(found) // 2] if found else 0.0
    alike = [one for one in found if _is_near(one, middle)]
    return exactly(middle, "measured") if len(alike) >= _ENOUGH_ALIKE else None


def _spacings(scene: Scene) -> Iterator[float]:
    """Of pauses, each after the one before or the begin of its attempt; as one node saw them."""
    node = min((job.node for job in scene.jobs), default=None)
    for job in scene.jobs:
        if job.node == node and job.traffic_since_unix_ns is not None:
            last_ns = job.traffic_since_unix_ns
            until_ns = job.until_unix_ns or scene.until_ns
            for begin_ns, end_ns in _pauses(scene, (last_ns, until_ns), _PERHAPS):
                yield (begin_ns - last_ns) / SECOND_NS
                last_ns = end_ns


def _saved_ns(scene: Scene, within: Span, interval: Given[float] | None) -> int | None:
    """The end of the last pause that was a checkpoint."""
    known = _pauses(scene, within, frozenset())
    if interval is None:
        return known[-1][1] if known else None
    saved_ns, last_ns = None, within[0]
    for begin_ns, end_ns in _pauses(scene, within, _PERHAPS):
        apart = (begin_ns - last_ns) / SECOND_NS
        if (begin_ns, end_ns) in known or _is_near(apart, interval.value):
            saved_ns = last_ns = end_ns
    return saved_ns


def _pauses(scene: Scene, within: Span, perhaps: frozenset[StallClass]) -> list[Span]:
    """Those that are known to be checkpoints, and those that may be."""
    spans = ((one, one.begin_unix_ns, one.end_unix_ns) for one in scene.stalls)
    return union(
        (begin, end)
        for stall, begin, end in spans
        if stall.stall_class == "checkpoint" or stall.stall_class in perhaps
        if end is not None and within[0] < begin and end <= within[1]
    )


def _is_near(seconds: float, other: float) -> bool:
    return abs(seconds - other) <= _NEAR * other
