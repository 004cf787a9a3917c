"""Jobs: what an agent tells of a job whose processes run on its node."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from flapd.model.given import Given, Source, exactly
from flapd.model.job import Job
from simulators.cluster.clock import NodeClock
from simulators.cluster.names import id_of, node_name, port_key
from simulators.cluster.placed import JobRun
from simulators.cluster.told import Told
from simulators.job.record import Attempt
from simulators.job.releases import heartbeat_seconds, tells_others

_FOUND_SECONDS = 3.0
_LEARNT_SECONDS = 90.0
"""Until the rhythm of its traffic is known."""
GONE_SECONDS = 5.0
"""Until a look at the node's processes finds none of it any more."""
_SHORTEST_STALL_SECONDS = 1.0
_OF_USUAL_PAUSES = 1.8


def job_told(one: JobRun, node: int, clock: NodeClock, watched_from: float) -> Iterator[Told]:
    """Each attempt is a job that began at another time, under the same name."""
    for attempt in one.run.attempts:
        yield from _attempt_told(one, attempt, node, clock, watched_from)


def _attempt_told(
    one: JobRun, attempt: Attempt, node: int, clock: NodeClock, watched_from: float
) -> Iterator[Told]:
    seen = max(attempt.begin + _FOUND_SECONDS, watched_from)
    gone = one.gone_at(attempt, node)
    if gone is not None and gone < watched_from:
        return
    job = _job(one, attempt, node, clock)
    yield Told(seen, job)
    learnt = max(attempt.first_step, watched_from) + _LEARNT_SECONDS
    if gone is None or learnt < gone:
        job = replace(
            job,
            revision=2,
            stalls_seen_since_unix_ns=clock.unix(learnt),
            shortest_stall_seconds=shortest_stall_seconds(one),
        )
        yield Told(learnt, job)
    if gone is not None:
        over = gone + GONE_SECONDS
        job = replace(job, revision=job.revision + 1, until_unix_ns=clock.unix(over))
        yield Told(over, job)


def shortest_stall_seconds(one: JobRun) -> float:
    """What shows beside the pauses in which all compute."""
    longest = max(phase.compute_seconds for phase in one.run.spec.steps.phases)
    return max(_SHORTEST_STALL_SECONDS, _OF_USUAL_PAUSES * longest)


def _job(one: JobRun, attempt: Attempt, node: int, clock: NodeClock) -> Job:
    spec = one.run.spec
    since_ns = clock.unix(attempt.begin)
    return Job(
        id=id_of("job", node_name(node), one.job, since_ns),
        revision=1,
        node=node_name(node),
        job=one.job,
        kind="training",
        world_size=exactly(spec.world_size, "environment"),
        local_ranks=tuple(one.ranks_on(node)),
        gpus=spec.ranks_per_node,
        ports={port_key(node, port): "queue_pair" for port in range(spec.ranks_per_node)},
        since_unix_ns=since_ns,
        until_unix_ns=None,
        policy=_policy(one),
        blind_to=("its log is a pipe",) if one.log == "none" else (),
    )


def _policy(one: JobRun) -> dict[str, Given[Any]]:
    """The timeouts in force, as environment and releases tell them."""
    spec, software = one.run.spec, one.run.spec.software
    by_hand: Source = "version" if spec.transport.ib_timeout is None else "environment"
    tells = tells_others(software.torch_version, dumps=software.is_dumping)
    found: dict[str, Given[Any]] = {
        "ib_timeout": exactly(spec.ib_timeout, by_hand),
        "retry_cnt": exactly(spec.transport.retry_cnt, "default"),
        "watchdog_seconds": exactly(software.group_timeout_seconds, "version"),
        "error_handling": exactly(software.handling, "environment"),
        "coordinated": exactly(tells, "version"),
        "failover": exactly(value=False, source="default"),
    }
    beat = heartbeat_seconds(software.torch_version)
    return found if beat is None else {**found, "heartbeat_seconds": exactly(beat, "version")}
