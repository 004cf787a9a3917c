"""Truth: what really hurt which job of a fleet, and whose downs hurt nobody."""

from collections.abc import Iterable

import msgspec

from flapd.model.times import SECOND_NS
from simulators.cluster.clock import NodeClock
from simulators.cluster.links import Down
from simulators.cluster.names import node_name, port_key
from simulators.cluster.placed import JobRun
from simulators.job.truth import CauseKind, Symptom, SymptomKind


class Link(msgspec.Struct, frozen=True):
    """A down of a port; times are seconds from the origin."""

    id: str
    """Of the outage that its agent tells."""
    node: str
    key: str
    begin: float
    end: float
    switch: str | None
    is_planned: bool


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """What hurt a job once."""

    job: str
    kind: SymptomKind
    cause: CauseKind
    links: tuple[Link, ...]
    """Of the job's nodes, all that what did it took down; empty: it was no link."""
    world_size: int
    begin: float
    end: float
    lost_seconds: float
    gpu_seconds: float
    """Of the whole job, once."""


class FleetTruth(msgspec.Struct, frozen=True):
    stories: tuple[Story, ...]
    innocent: tuple[Link, ...]
    """That hurt no job."""
    skew_seconds: dict[str, float]
    """By node: how far its wall clock is ahead."""


def truth_of(runs: Iterable[JobRun], downs: list[Down], clocks: dict[int, NodeClock]) -> FleetTruth:
    runs = tuple(runs)
    guilty = {
        down.happening
        for one in runs
        for symptom in one.run.truth.symptoms
        for down in one.downs_in(symptom)
    }
    return FleetTruth(
        tuple(_story(one, symptom) for one in runs for symptom in one.run.truth.symptoms),
        tuple(_link(down) for down in downs if down.happening not in guilty),
        {node_name(node): clock.skew_ns / SECOND_NS for node, clock in clocks.items()},
    )


def _story(one: JobRun, symptom: Symptom) -> Story:
    happenings = {down.happening for down in one.downs_in(symptom)}
    return Story(
        job=one.job,
        kind=symptom.kind,
        cause=symptom.cause,
        links=tuple(_link(down) for down in one.downs.values() if down.happening in happenings),
        world_size=one.run.spec.world_size,
        begin=symptom.begin,
        end=symptom.end,
        lost_seconds=symptom.lost.seconds,
        gpu_seconds=symptom.gpu_seconds,
    )


def _link(down: Down) -> Link:
    return Link(
        down.id,
        node_name(down.node),
        port_key(down.node, down.port),
        down.begin,
        down.end,
        down.switch,
        down.is_planned,
    )
