"""Cases for verdicts of a hub: simulated fleets in each of which one thing hurts one job.

Beside it stand flaps that hurt nobody, by the simulation's own word.
"""

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from simulators.cluster.fleet import Fleet
from simulators.cluster.spec import (
    Flap,
    FleetSpec,
    Happening,
    Log,
    Maintenance,
    Partition,
    PlacedJob,
    SwitchDown,
)
from simulators.cluster.truth import Story
from simulators.job.happenings import CodeHang, Died, OutOfStep, SlowLoader
from simulators.job.job import simulate
from simulators.job.spec import JobSpec, LinkLayer, Pause, Software, Transport

AT = 420.0
WATCHED_FROM = 240.0
SKEW_SECONDS = 2.0
RAILS = 8
UNUSED_PORT = 8
SHORTEST_SECONDS = 2.5
_NODES = (4, 8, 16, 32, 64, 128)
_LOGS: tuple[Log, ...] = ("own", "own", "shared", "none")
_LAYERS: tuple[LinkLayer, ...] = ("InfiniBand", "Ethernet")
_SOFTWARE = (
    Software(torch="2.8.0", nccl="2.27.3"),
    Software(torch="2.4.0", nccl="2.20.5"),
    Software(torch="2.9.1", nccl="2.28.9", launcher="slurm-kill-on-bad-exit"),
    Software(torch="2.2.0", nccl="2.18.6"),
)


class Case(NamedTuple):
    name: str
    seed: int
    fleet: Fleet

    @property
    def by_links(self) -> list[Story]:
        """Stories of links, long enough to be seen beside ordinary pauses."""
        return [
            one
            for one in self.fleet.truth.stories
            if one.links and (one.kind != "stall" or one.end - one.begin >= SHORTEST_SECONDS)
        ]

    def __str__(self) -> str:
        return f"{self.name}, seed {self.seed}"


def cases(seeds: range) -> Iterator[Case]:
    """Of each kind by turns, one a seed."""
    kinds = [name for name, (_, share) in KINDS.items() for _ in range(share)]
    for seed in seeds:
        name = kinds[seed % len(kinds)]
        rng = random.Random(f"{seed} {name}")
        yield Case(name, seed, Fleet(KINDS[name][0](rng)))


def _job(rng: random.Random, nodes: int | None = None, name: str = "4711") -> PlacedJob:
    layer = rng.choice(_LAYERS)
    spec = JobSpec(
        seed=rng.randrange(1 << 30),
        job=name,
        nodes=nodes or rng.choice(_NODES),
        link_layer=layer,
        restarts=0,
        duration_seconds=AT + 160.0,
        transport=Transport(adaptive=layer == "Ethernet" and rng.random() < 0.5),
        software=replace(rng.choice(_SOFTWARE), nccl_debug=rng.choice(("", "WARN", "INFO"))),
    )
    return PlacedJob(spec, log=rng.choice(_LOGS))


def _fleet(rng: random.Random, *jobs: PlacedJob, happenings: tuple[Happening, ...]) -> FleetSpec:
    nodes = max(job.nodes.stop for job in jobs)
    longest = max((one.down_seconds for one in happenings if isinstance(one, Flap)), default=0.0)
    longer = replace_duration(jobs, AT + 160.0 + longest)
    return FleetSpec(
        seed=rng.randrange(1 << 30),
        nodes=nodes,
        pod_nodes=min(32, max(4, nodes // 4)),
        largest_skew_seconds=rng.choice((0.0, 0.05, SKEW_SECONDS)),
        watched_from_seconds=WATCHED_FROM,
        jobs=longer,
        happenings=(*happenings, *_innocent(rng, longer, happenings), *_cut_off(rng, nodes)),
    )


def replace_duration(jobs: tuple[PlacedJob, ...], seconds: float) -> tuple[PlacedJob, ...]:
    return tuple(replace(job, spec=replace(job.spec, duration_seconds=seconds)) for job in jobs)


def _cut_off(rng: random.Random, nodes: int) -> Iterator[Happening]:
    """In every fourth fleet some nodes tell minutes late."""
    if rng.random() < 0.25:
        some = tuple(sorted(rng.sample(range(nodes), rng.randint(1, nodes // 2))))
        yield Partition(at_seconds=AT - 10.0, for_seconds=rng.uniform(20.0, 300.0), nodes=some)


def _innocent(
    rng: random.Random, jobs: tuple[PlacedJob, ...], guilty: tuple[Happening, ...]
) -> Iterator[Flap]:
    """Of ports that no job uses at that moment, and of ports in use while nobody sends."""
    nodes = {one.node for one in guilty if isinstance(one, Flap)}
    for job in jobs:
        others = [node for node in job.nodes if node not in nodes]
        for node in rng.sample(others, min(2, len(others))):
            at = AT + rng.uniform(-5.0, 10.0)
            yield Flap(
                at_seconds=at, down_seconds=rng.uniform(0.3, 20.0), node=node, port=UNUSED_PORT
            )
        at, down = _in_a_gap(rng, job)
        node, port = rng.choice(others), rng.randrange(RAILS)
        yield Flap(at_seconds=at, down_seconds=down, node=node, port=port)


def _in_a_gap(rng: random.Random, job: PlacedJob) -> tuple[float, float]:
    """While all compute, soon before anything happens."""
    run = simulate(replace(job.spec, happenings=(), duration_seconds=AT))
    gaps = [
        (last, first)
        for (_, last), (first, _) in pairwise(run.spans)
        if 0.8 < first - last < 2.0 and last > AT - 60.0
    ]
    begin, end = rng.choice(gaps)
    down = rng.uniform(0.15, 0.3)
    return rng.uniform(begin + 0.1, end - down - 0.1), down


def _link(rng: random.Random) -> FleetSpec:
    """Short or long, of one port: its node is seldom the one that reports."""
    job = _job(rng)
    down = rng.choice((2.0, 10.0, 60.0, 120.0)) * rng.uniform(1.0, 1.5)
    node = rng.randrange(job.spec.nodes)
    flap = Flap(
        at_seconds=AT + rng.uniform(0.0, 4.0),
        down_seconds=down,
        node=node,
        port=rng.randrange(RAILS),
    )
    return _fleet(rng, job, happenings=(flap,))


def _switch(rng: random.Random) -> FleetSpec:
    job = _job(rng, nodes=rng.choice((16, 32, 64)))
    down = SwitchDown(
        at_seconds=AT, down_seconds=rng.uniform(3.0, 150.0), switch=f"leaf-1-{rng.randrange(8)}"
    )
    return _fleet(rng, job, happenings=(down,))


def _spine(rng: random.Random) -> FleetSpec:
    job = _job(rng, nodes=rng.choice((16, 32)))
    down = SwitchDown(
        at_seconds=AT, down_seconds=rng.uniform(3.0, 150.0), switch=f"spine-{rng.randrange(8)}"
    )
    return _fleet(rng, job, happenings=(down,))


def _two_jobs(rng: random.Random) -> FleetSpec:
    """One of them is hit, and the other goes on beside it."""
    first = _job(rng, nodes=rng.choice((4, 16, 32)))
    second = _job(rng, nodes=rng.choice((4, 16, 32)), name="4712")
    second = replace(second, first_node=first.spec.nodes)
    node = rng.choice(list(second.nodes))
    flap = Flap(
        at_seconds=AT, down_seconds=rng.uniform(5.0, 120.0), node=node, port=rng.randrange(RAILS)
    )
    return _fleet(rng, first, second, happenings=(flap,))


def _planned(rng: random.Random) -> FleetSpec:
    """Somebody works on a node whose job was forgotten."""
    job = _job(rng)
    node = rng.randrange(job.spec.nodes)
    work = Maintenance(at_seconds=AT - 20.0, for_seconds=600.0, node=node)
    flap = Flap(
        at_seconds=AT, down_seconds=rng.uniform(5.0, 90.0), node=node, port=rng.randrange(RAILS)
    )
    return _fleet(rng, job, happenings=(work, flap))


def _not_a_link(rng: random.Random) -> FleetSpec:
    job = _job(rng)
    rank = rng.randrange(job.spec.world_size)
    happening = rng.choice(
        (
            CodeHang(AT, rank),
            OutOfStep(AT, rank),
            Died(AT, rank),
            SlowLoader(AT, rank, late_seconds=rng.uniform(4.0, 40.0)),
        )
    )
    spec = replace(job.spec, happenings=(happening,))
    beside = (_while_it_stands_still(rng, job),) if rng.random() < 0.5 else ()
    return _fleet(rng, replace(job, spec=spec), happenings=beside)


def _while_it_stands_still(rng: random.Random, job: PlacedJob) -> Flap:
    """Of a port in use, through which nobody sends now."""
    return Flap(
        at_seconds=AT + rng.uniform(4.0, 20.0),
        down_seconds=rng.uniform(0.3, 8.0),
        node=rng.choice(list(job.nodes)),
        port=rng.randrange(RAILS),
    )


def _checkpoint(rng: random.Random) -> FleetSpec:
    job = _job(rng)
    pause = Pause(AT - 30.0, rng.uniform(5.0, 30.0))
    return _fleet(rng, replace(job, spec=replace(job.spec, checkpoint=pause)), happenings=())


KINDS: dict[str, tuple[Callable[[random.Random], FleetSpec], int]] = {
    "one link": (_link, 4),
    "leaf switch": (_switch, 1),
    "not a link": (_not_a_link, 2),
    "two jobs": (_two_jobs, 1),
    "spine switch": (_spine, 1),
    "planned work": (_planned, 1),
    "checkpoint": (_checkpoint, 1),
}
"""With how often each comes."""
