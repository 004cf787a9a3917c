"""Stalls: what an agent tells of the traffic of a job that stood still, from its own ports."""

from bisect import bisect_right
from collections.abc import Iterator

from msgspec.structs import replace

from flapd.model.stall import Stall, StallClass
from simulators.cluster.clock import NodeClock
from simulators.cluster.jobs import GONE_SECONDS, shortest_stall_seconds
from simulators.cluster.names import id_of, node_name, port_key
from simulators.cluster.placed import JobRun
from simulators.cluster.told import Told
from simulators.job.truth import Symptom

_NOTICED_SECONDS = 0.6
_TOLD_SECONDS = 1.5
"""After the stop, beyond what is usual."""
_SAMPLE_SECONDS = 0.1
_FULL_FLOW_SECONDS = 0.15
_PLANNED: dict[str, StallClass] = {"checkpoint": "checkpoint", "evaluation": "evaluation"}
_UNSEEN = ("gpus_busy", "storage_busy")
_LONGEST_ENDING_SECONDS = 300.0
"""What stood still for longer before the job was over did so for another reason."""


def stalls_told(one: JobRun, node: int, clock: NodeClock, watched_from: float) -> Iterator[Told]:
    for symptom in one.run.truth.symptoms:
        if symptom.begin >= watched_from:
            yield from _stall_told(one, symptom, node, clock)


def _stall_told(one: JobRun, symptom: Symptom, node: int, clock: NodeClock) -> Iterator[Told]:
    gone = _gone_at(one, symptom, node)
    begin, usual = _stopped(one, symptom)
    end = symptom.end if gone is None else gone + GONE_SECONDS
    if end - begin < max(shortest_stall_seconds(one), usual + _NOTICED_SECONDS):
        return
    stall = _stall(one, symptom, node, clock, begin, usual)
    noticed = begin + usual + _TOLD_SECONDS
    revision = 1
    if noticed < end:
        yield Told(noticed, stall)
        revision = 2
    over = replace(stall, revision=revision, end_ns=clock.ns(end - _SAMPLE_SECONDS / 2))
    is_ending = gone is not None and end - begin <= _LONGEST_ENDING_SECONDS
    if is_ending and stall.stall_class != "local_link":
        over = replace(over, stall_class="job_end", blind_to=())
    yield Told(end + _SAMPLE_SECONDS, over)


def _gone_at(one: JobRun, symptom: Symptom, node: int) -> float | None:
    """When the processes of the node were gone by it; None: they went on."""
    for attempt in one.run.attempts:
        if attempt.stop is not None and attempt.stop.at == symptom.begin:
            return one.gone_at(attempt, node)
    return None


def _stopped(one: JobRun, symptom: Symptom) -> tuple[float, float]:
    """When traffic was seen last, and for how long it usually pauses there."""
    spans = one.run.spans
    place = bisect_right(spans, (symptom.begin, float("inf")))
    last = spans[place - 1][1] if place else symptom.begin
    pause = symptom.begin - last
    if pause < _FULL_FLOW_SECONDS:
        return symptom.begin - _SAMPLE_SECONDS / 2, 0.0
    return last, pause


def _stall(
    one: JobRun, symptom: Symptom, node: int, clock: NodeClock, begin: float, usual: float
) -> Stall:
    stall_class, blind = _class(one, symptom, node)
    begin_ns = clock.ns(begin)
    return Stall(
        id=id_of("stall", node_name(node), one.job, begin_ns),
        revision=1,
        node=node_name(node),
        job=one.job,
        begin_ns=begin_ns,
        resolution_ns=clock.ns(begin + _SAMPLE_SECONDS) - begin_ns,
        stall_class=stall_class,
        ports=tuple(port_key(node, port) for port in range(one.run.spec.ranks_per_node)),
        expected_seconds=usual,
        blind_to=blind,
        wall_offset_ns=clock.wall_offset_ns,
    )


def _class(one: JobRun, symptom: Symptom, node: int) -> tuple[StallClass, tuple[str, ...]]:
    """By what the node itself can see: its own ports, and the log of the ranks that tell."""
    if any(down.node == node for down in one.downs_in(symptom)):
        return "local_link", ()
    planned = _PLANNED.get(symptom.cause)
    teller = 0 if symptom.cause == "checkpoint" else one.run.spec.world_size - 1
    hears = one.log == "shared" or (one.log == "own" and node == one.node_of(teller))
    if planned is not None and hears:
        return planned, ()
    if _is_retransmitting(one, symptom, node):
        return "remote", ()
    return "unknown", _UNSEEN


def _is_retransmitting(one: JobRun, symptom: Symptom, node: int) -> bool:
    """Its ports wait for acknowledgements of one whose link is gone."""
    waits = one.waits.get(node, ())
    return any(symptom.begin <= wait.begin <= symptom.end for wait in waits)
