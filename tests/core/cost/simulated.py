"""Cases that a simulated job of 1,024 ranks meets, and what of them an agent would know."""

import math
import random
from typing import Any, NamedTuple

from msgspec.structs import replace

from flapd.core.cost.inputs import Inputs
from flapd.core.cost.releases import Releases, with_releases
from flapd.model.given import Given, exactly
from flapd.model.loss import Regime
from simulators.job.happenings import Outage
from simulators.job.job import simulate
from simulators.job.spec import JobSpec, LinkLayer, Pause, Phase, Software, Steps, Transport
from simulators.job.truth import Symptom

GPUS = 1024
CHECKPOINT_EVERY = 1800.0
RESTART_SECONDS = 300.0
AT = 600.0
SOFTWARE = (
    Software(torch="2.4.0", nccl="2.20.5"),
    Software(torch="2.6.0", nccl="2.21.5"),
    Software(torch="2.8.0", nccl="2.27.3"),
    Software(torch="2.9.1", nccl="2.27.5", launcher="slurm-kill-on-bad-exit"),
    Software(torch="2.2.0", nccl="2.18.6"),
)


class Simulated(NamedTuple):
    """A job with one outage, and what it did; None: nobody felt it."""

    spec: JobSpec
    outage: Outage
    symptom: Symptom | None


def one_case(seed: int, *, exact: bool) -> Simulated:
    """`exact`: data moves at the down, and timers take their nominal time."""
    rng = random.Random(f"{seed} case")
    layers: tuple[LinkLayer, ...] = ("InfiniBand", "Ethernet")
    layer = rng.choice(layers)
    outage = Outage(
        AT + rng.uniform(0.0, 900.0),
        math.exp(rng.uniform(math.log(0.3), math.log(120.0))),
        node=rng.randrange(GPUS // 8),
        port=rng.randrange(8),
        usable_after_seconds=rng.choice((0.0, rng.uniform(0.1, 3.0))),
    )
    spec = JobSpec(
        seed=seed,
        link_layer=layer,
        duration_seconds=outage.at_seconds + 300.0,
        restart_seconds=RESTART_SECONDS,
        restarts=1,
        checkpoint=Pause(CHECKPOINT_EVERY, 20.0),
        steps=_steps(rng, exact=exact),
        transport=Transport(
            ib_timeout=rng.choice((None, 18, 19, 20, 21, 22)),
            spread=(1.0, 1.0) if exact else (1.0, 4.0),
            adaptive=layer == "Ethernet" and rng.random() < 0.5,
            first_try_counts=not exact and rng.random() < 0.5,
            adaptive_total_seconds=None if exact else rng.choice((None, rng.uniform(5.0, 30.0))),
        ),
        software=rng.choice(SOFTWARE),
        happenings=(outage,),
    )
    symptoms = [one for one in simulate(spec).truth.symptoms if one.cause == "outage"]
    return Simulated(spec, outage, symptoms[0] if symptoms else None)


def _steps(rng: random.Random, *, exact: bool) -> Steps:
    if exact:
        return Steps(phases=(Phase(0.0, 1e6),), collectives=1_000_000, ahead_seconds=0.0)
    period = rng.uniform(2.0, 20.0)
    idle = rng.uniform(0.1, 0.5)
    return Steps(phases=(Phase(period * idle, period * (1 - idle)),))


def gap_seconds(spec: JobSpec) -> float:
    """Of each step: an outage that begins in it is not felt until it is over."""
    return spec.steps.phases[0].compute_seconds * (1 + 2 * spec.steps.jitter)


def known(case: Simulated, **more: Given[Any]) -> Inputs:
    """By environment, libraries, counters and checkpoint lines; the rest is the model's own."""
    spec, software = case.spec, case.spec.software
    inputs = Inputs(
        gpus=exactly(spec.world_size, "environment"),
        down_seconds=exactly(case.outage.down_seconds, "measured"),
        usable_after_seconds=exactly(case.outage.usable_after_seconds, "measured"),
        retry_cnt=exactly(spec.transport.retry_cnt, "environment"),
        slack_seconds=Given(0.0, 0.0, gap_seconds(spec), "measured"),
    )
    if spec.transport.ib_timeout is not None:
        inputs = replace(inputs, ib_timeout=exactly(spec.transport.ib_timeout, "environment"))
    if spec.transport.adaptive:
        inputs = replace(inputs, schedule=exactly("adaptive", "measured"))
    elif spec.link_layer == "Ethernet":
        inputs = replace(inputs, schedule=Given("fixed", "fixed", "adaptive", "default"))
    releases = Releases(nccl=software.nccl, torch=software.torch, launcher=software.launcher)
    return replace(with_releases(inputs, releases), **more)


def seen(symptom: Symptom | None) -> Regime:
    """What traffic and logs show of how it ended."""
    if symptom is None:
        return "hidden"
    regimes: dict[str, Regime] = {
        "stall": "absorbed",
        "error": "transport_abort",
        "timeout": "watchdog",
    }
    return regimes[symptom.kind]
