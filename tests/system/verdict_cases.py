"""Cases for verdicts: simulated jobs whose stalls and deaths have one known cause each.

Whoever is innocent is so by the simulation's own word: the run with the flap is the run without.
"""

import math
import random
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from simulators.job.happenings import (
    CodeHang,
    Died,
    Happening,
    Outage,
    OutOfStep,
    SlowLoader,
    WatchdogStuck,
)
from simulators.job.job import simulate
from simulators.job.record import Run
from simulators.job.spec import JobSpec, LinkLayer, Pause, Software, Transport
from simulators.job.truth import Symptom

Flap = Literal["cause", "none", "inside", "unused", "after"]
"""Where a flap of this node stands: it is the cause, or innocent."""

HERE = 0
NODES = (4, 128)
AT = 420.0
"""The job is no longer starting up then."""
DOWNS = (0.3, 2.0, 10.0, 60.0)
LAYERS: tuple[LinkLayer, ...] = ("InfiniBand", "Ethernet")
SEEDS = 20
INNOCENT_SEEDS = 13

POLICIES: dict[str, tuple[int | None, Software]] = {
    "default since 2.23": (None, Software(torch="2.8.0", nccl="2.27.3")),
    "default before 2.23": (None, Software(torch="2.4.0", nccl="2.20.5")),
    "patient": (22, Software(torch="2.9.1", nccl="2.28.9", launcher="slurm-kill-on-bad-exit")),
    "errors kept back": (None, Software(torch="2.2.0", nccl="2.18.6")),
}
_DEBUG: tuple[Literal["", "WARN", "INFO"], ...] = ("", "WARN", "INFO")


class Case(NamedTuple):
    name: str
    """What really did it."""
    flap: Flap
    seed: int
    has_log: bool
    run: Run
    symptom: Symptom | None
    """The one that is asked about; None: the flap was felt by nobody."""

    def __str__(self) -> str:
        return f"{self.name}, flap {self.flap}, seed {self.seed}, log {self.has_log}"


def positives(seeds: range) -> Iterator[Case]:
    """Of each length, policy and link layer, one a seed."""
    for seed in seeds:
        for down, policy, layer in product(DOWNS, POLICIES, LAYERS):
            rng = random.Random(f"{seed} {down} {policy} {layer}")
            outage = Outage(
                AT + rng.uniform(0.0, 5.0),
                down,
                node=HERE,
                port=rng.randrange(8),
                usable_after_seconds=0.0 if layer == "Ethernet" else rng.uniform(0.0, 1.5),
            )
            run = simulate(_job(rng, policy, layer, outage))
            felt = next((one for one in run.truth.symptoms if one.cause == "outage"), None)
            yield Case("outage", "cause", seed, rng.random() < 0.5, run, felt)


def negatives(seeds: range) -> Iterator[Case]:
    """Of each cause with each place of an innocent flap, one a seed."""
    flaps: tuple[Flap, ...] = ("none", "inside", "unused", "after")
    for seed in seeds:
        for (name, cause), flap in product(CAUSES.items(), flaps):
            rng = random.Random(f"{seed} {name} {flap}")
            policy, layer = rng.choice(sorted(POLICIES)), rng.choice(LAYERS)
            spec = cause(rng, _job(rng, policy, layer))
            run = simulate(spec)
            (symptom,) = run.truth.symptoms
            if flap != "none":
                innocent = _innocent(rng, flap, run, symptom)
                run = simulate(replace(spec, happenings=(*spec.happenings, innocent)))
                assert run.truth.symptoms == (symptom,), (name, flap, seed)
            yield Case(name, flap, seed, rng.random() < 0.5, run, symptom)


def _job(rng: random.Random, policy: str, layer: LinkLayer, *happenings: Happening) -> JobSpec:
    """It runs on until whatever stands still has gone on for some time."""
    timeout, software = POLICIES[policy]
    down = max((one.down_seconds for one in happenings if isinstance(one, Outage)), default=60.0)
    longest = down + (80.0 if timeout else 20.0)
    return JobSpec(
        seed=rng.randrange(1 << 30),
        nodes=rng.choice(NODES),
        link_layer=layer,
        restarts=0,
        duration_seconds=AT + 100.0 + longest,
        transport=Transport(
            ib_timeout=timeout,
            first_try_counts=rng.random() < 0.5,
            adaptive=layer == "Ethernet" and rng.random() < 0.5,
        ),
        software=replace(software, nccl_debug=rng.choice(_DEBUG)),
        happenings=happenings,
    )


def _with(spec: JobSpec, happening: Happening, **software: Any) -> JobSpec:
    return replace(spec, happenings=(happening,), software=replace(spec.software, **software))


def _elsewhere(rng: random.Random, spec: JobSpec) -> int:
    """A rank of another node, as often as not of a neighbour."""
    return rng.choice((rng.randrange(8, 16), rng.randrange(8, spec.world_size)))


def _anywhere(rng: random.Random, spec: JobSpec) -> int:
    """As often as not on this node."""
    return rng.choice((rng.randrange(8), rng.randrange(spec.world_size)))


def _checkpoint(rng: random.Random, spec: JobSpec) -> JobSpec:
    return replace(spec, checkpoint=Pause(AT - 30.0, rng.uniform(5.0, 40.0)))


def _evaluation(rng: random.Random, spec: JobSpec) -> JobSpec:
    return replace(spec, evaluation=Pause(AT - 30.0, rng.uniform(10.0, 60.0)))


def _slow_loader(rng: random.Random, spec: JobSpec) -> JobSpec:
    late = rng.uniform(4.0, 40.0)
    return _with(spec, SlowLoader(AT, _anywhere(rng, spec), late_seconds=late))


def _out_of_step(rng: random.Random, spec: JobSpec) -> JobSpec:
    return _with(spec, OutOfStep(AT, _anywhere(rng, spec)))


def _code_hang(rng: random.Random, spec: JobSpec) -> JobSpec:
    return _with(spec, CodeHang(AT, _anywhere(rng, spec)))


def _heartbeat_kill(rng: random.Random, spec: JobSpec) -> JobSpec:
    stuck = WatchdogStuck(AT, _anywhere(rng, spec))
    return _with(spec, stuck, watchdog_seconds=1800.0)


def _remote_failure(rng: random.Random, spec: JobSpec) -> JobSpec:
    """Often of a neighbour, whose end this node sees as status 12."""
    return _with(spec, Died(AT, _elsewhere(rng, spec)), launcher=rng.choice(("torchrun", "slurm")))


def _remote_outage(rng: random.Random, spec: JobSpec) -> JobSpec:
    """Long enough to be felt whenever it comes."""
    node, down = rng.randrange(1, spec.nodes), math.exp(rng.uniform(math.log(4.0), math.log(60.0)))
    return _with(spec, Outage(AT, down, node=node, port=rng.randrange(8)))


CAUSES: dict[str, Callable[[random.Random, JobSpec], JobSpec]] = {
    "checkpoint": _checkpoint,
    "evaluation": _evaluation,
    "slow loader": _slow_loader,
    "out of step": _out_of_step,
    "code hang": _code_hang,
    "heartbeat kill": _heartbeat_kill,
    "remote failure": _remote_failure,
    "remote outage": _remote_outage,
}


def _innocent(rng: random.Random, flap: Flap, run: Run, symptom: Symptom) -> Outage:
    port = rng.randrange(8)
    if flap == "unused":
        at = symptom.begin + rng.uniform(-1.0, 1.0)
        return Outage(at, rng.choice(DOWNS), node=HERE, port=8)
    if flap == "after":
        at, down = _after(rng, run, symptom)
    elif rng.random() < 0.5:
        at, down = _in_a_gap(rng, run, before=symptom.begin)
    else:
        at, down = _while_it_stands_still(rng, symptom)
    return Outage(at, down, node=HERE, port=port)


def _after(rng: random.Random, run: Run, symptom: Symptom) -> tuple[float, float]:
    if symptom.told_at is None:
        return _in_a_gap(rng, run, after=symptom.end)
    return symptom.told_at + rng.uniform(0.5, 30.0), rng.choice(DOWNS)


def _while_it_stands_still(rng: random.Random, symptom: Symptom) -> tuple[float, float]:
    """Begins soon after traffic stopped, and is over before it goes on."""
    length = symptom.end - symptom.begin
    down = rng.choice([one for one in DOWNS if one < length / 2])
    return symptom.begin + rng.uniform(0.05, min(8.0, length - down - 0.5)), down


def _in_a_gap(
    rng: random.Random, run: Run, before: float = math.inf, after: float = 0.0
) -> tuple[float, float]:
    """While all compute: the last such time before, or the first after, that is long enough."""
    gaps = [
        (last, first)
        for (_, last), (first, _) in pairwise(run.spans)
        if 0.8 < first - last < 2.0 and after <= last and first <= before
    ]
    begin, end = gaps[-1] if before < math.inf else gaps[0]
    down = rng.uniform(0.05, 0.3)
    return rng.uniform(begin + 0.1, end - down - 0.1), down
