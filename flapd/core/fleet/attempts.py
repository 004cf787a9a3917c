"""Attempts: which of the jobs that nodes tell of under one name are one job."""

from collections.abc import Iterable

from flapd.model.job import Job
from flapd.model.times import SECOND_NS

_TOGETHER_NS = 600 * SECOND_NS
"""Within which the processes of one attempt begin, everywhere."""
_AGAIN_WITHIN_NS = 3600 * SECOND_NS
"""A job that is started again later under its name is another."""
_FOREVER_NS = 1 << 62


def jobs_of(told: Iterable[Job]) -> list[list[Job]]:
    """Each job with all its attempts on all its nodes, in order of time; a function of the set.

    A name may come again: later, or at the same time on other nodes where each job is complete.
    """
    found: list[list[Job]] = []
    for start in _starts(told):
        mine = next((one for one in reversed(found) if _go_on(one, start)), None)
        if mine is None:
            found.append(start)
        else:
            mine += start
    return found


def job_at(jobs: list[list[Job]], node: str, at_ns: int) -> int:
    """The place of the job that something of this node belongs to."""
    here = [place for place, one in enumerate(jobs) if any(job.node == node for job in one)]
    began = [p for p in here or range(len(jobs)) if _since_ns(jobs[p]) <= at_ns + _TOGETHER_NS]
    return began[-1] if began else (here or [0])[0]


def _starts(told: Iterable[Job]) -> list[list[Job]]:
    starts: list[list[Job]] = []
    for job in sorted(told, key=lambda one: (one.since_unix_ns, one.id)):
        if starts and job.since_unix_ns - starts[-1][0].since_unix_ns <= _TOGETHER_NS:
            starts[-1].append(job)
        else:
            starts.append([job])
    return starts


def _go_on(before: list[Job], start: list[Job]) -> bool:
    since_ns = _since_ns(start)
    until_ns = max(_until_ns(job, since_ns, start) for job in before)
    if since_ns > until_ns + _AGAIN_WITHIN_NS:
        return False
    # An elastic job may take nodes in while it runs, but not more than it is.
    return until_ns <= since_ns or not _is_complete_without(before, start, since_ns)


def _until_ns(job: Job, now_ns: int, start: list[Job]) -> int:
    """A node that died never told the end; it is over where the next attempt is there."""
    if job.until_unix_ns is not None:
        return job.until_unix_ns
    return now_ns if any(one.node == job.node for one in start) else _FOREVER_NS


def _is_complete_without(before: list[Job], start: list[Job], at_ns: int) -> bool:
    nodes = {job.node for job in start}
    running = [job for job in before if (job.until_unix_ns or _FOREVER_NS) > at_ns]
    world = max((job.world_size.value for job in running if job.world_size), default=None)
    is_apart = nodes.isdisjoint(job.node for job in running)
    return is_apart and world is not None and sum(job.gpus for job in running) >= world


def _since_ns(jobs: list[Job]) -> int:
    return min(job.since_unix_ns for job in jobs)
