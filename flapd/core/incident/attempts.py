"""Attempts: a job that died and was started again is told once for each; which it was, and when."""

from collections.abc import Iterable

from flapd.model.job import Job
from flapd.model.times import SECOND_NS

_CUT_OFF_NS = 2 * SECOND_NS


def latest(jobs: Iterable[Job]) -> list[Job]:
    """Of each node the last."""
    by_node: dict[str, Job] = {}
    for job in jobs:
        known = by_node.get(job.node)
        if known is None or job.since_unix_ns >= known.since_unix_ns:
            by_node[job.node] = job
    return [by_node[node] for node in sorted(by_node)]


def running_at(jobs: Iterable[Job], at_ns: int, node: str | None = None) -> list[Job]:
    """Those that were there then; of one node, or of all."""
    return [
        job
        for job in jobs
        if node in (None, job.node) and job.since_unix_ns <= at_ns <= (job.until_unix_ns or at_ns)
    ]


def ended_with(jobs: Iterable[Job], node: str, begin_ns: int, end_ns: int) -> bool:
    """The attempt that ran at `begin_ns` was over by `end_ns`, or so soon after that it is one."""
    return any(
        job.until_unix_ns is not None and end_ns >= job.until_unix_ns - _CUT_OFF_NS
        for job in running_at(jobs, begin_ns, node)
    )


def gone_ns(jobs: Iterable[Job], at_ns: int) -> int | None:
    """When all processes of the attempt that ran then were gone; None: some are there."""
    ends = [job.until_unix_ns for job in running_at(jobs, at_ns)]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def back_ns(jobs: Iterable[Job], after_ns: int, until_ns: int) -> int | None:
    """The first traffic of the next attempt; None: none was seen until then."""
    first = (job.traffic_since_unix_ns for job in jobs if job.since_unix_ns > after_ns)
    return min((at for at in first if at is not None and at <= until_ns), default=None)
