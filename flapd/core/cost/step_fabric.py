"""Step fabric: how much of a training step flaps, stalls and retransmissions took."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from flapd.core.cost.bounds import lost_range
from flapd.core.cost.budget import budget_of
from flapd.core.cost.durations import Length
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.price import regime_of
from flapd.core.cost.step import Gap, StepTimes, Training, gap
from flapd.core.spans import length
from flapd.model.given import Given
from flapd.model.loss import Range


class Flapped(NamedTuple):
    """One outage."""

    at_seconds: float
    """When it began, since a moment that is the same for all."""
    length: Length


class Waited(msgspec.Struct, frozen=True):
    """What the flaps of a period did to a job, by the model and its policy."""

    flaps: int
    deaths: int
    """Of these, those that by the nominal timers killed it: they lengthen no step."""
    seconds: Range
    """For which it stood still in the others; what several did at one time counts once."""
    more: bool = False
    """There were more, older ones, that were not looked at."""


class Resent(msgspec.Struct, frozen=True):
    """Retransmissions by cause, of as many seconds as samples are kept."""

    over_seconds: float
    by_cause: dict[str, int]
    most_seconds: float
    """That those which waited for a timer can have cost, one after the other."""


class Tellers(msgspec.Struct, frozen=True):
    """The nodes whose links a hub speaks of."""

    job: str
    nodes: int
    """That told of the job in the period."""
    gpus: int
    """Of the job, on these: of any others no link is seen."""
    silent: tuple[str, ...] = ()
    """Those of them of which nothing is heard now: what their links did since is not seen."""


class Fabric(msgspec.Struct, frozen=True):
    """What one node, or all of a job, saw of the fabric in a period; None: it cannot be told."""

    over_seconds: float
    waited: Waited
    stalled_seconds: dict[str, float] | None = None
    """Traffic that stood still, by class; None: not seen, or not to be told.

    Each moment counts once, whoever tells of it.
    """
    resent: Resent | None = None
    stalled_more: bool = False
    """There were more stalls, older ones, that were not looked at."""
    tellers: Tellers | None = None
    """None: one node, of its own ports."""


class Unseen(msgspec.Struct, frozen=True):
    """What may explain the rest and no fabric monitor sees, and the one metric that would."""

    what: str
    metric: str
    reading: str


UNSEEN: tuple[Unseen, ...] = (
    Unseen(
        "waiting for data",
        "data-loader wait per step and rank, from the framework's timers",
        "above a few percent of a step on any rank: input, not fabric",
    ),
    Unseen(
        "kernels that do not fill the GPU",
        "DCGM_FI_PROF_SM_ACTIVE and DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "low on all ranks alike: model code or small batches",
    ),
    Unseen(
        "memory bound",
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "near its ceiling while tensor activity is low: HBM, not fabric",
    ),
    Unseen(
        "waiting in collectives",
        "time in NCCL kernels per rank, from torch.profiler or NCCL's profiler plugin",
        "high on all ranks: fabric or overlap; low on one and high on the others: that one is slow",
    ),
    Unseen(
        "one slow rank",
        "step time per rank without its collectives: lowest, median, highest",
        "one far above the median: a straggler, whose node to look at",
    ),
    Unseen(
        "GPUs that slow down",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS and DCGM_FI_DEV_SM_CLOCK",
        "throttled: power or heat",
    ),
    Unseen(
        "links of other nodes",
        "this question to the hub, or to the agent of each node of the job",
        "a flap anywhere stalls all ranks, and an agent sees its own ports",
    ),
)
UNSEEN_BY_HUB: tuple[Unseen, ...] = (
    *UNSEEN[:-1],
    Unseen(
        "retransmissions",
        "this question to the agent of each node of the job: --url http://NODE:19315",
        "counters stay with their node: a hub hears of flaps and stalls, and of no packet",
    ),
)


class StepAnswer(msgspec.Struct, frozen=True):
    """Where the time of a step goes, as far as the fabric has a part in it; seconds a step."""

    projected_seconds: float
    measured_seconds: float | None
    """None: nobody said, and none was seen."""
    gap: Gap | None = None
    fabric: Fabric | None = None
    """None where nobody was asked that watches it."""
    flaps_seconds: Range | None = None
    stalls_seconds: dict[str, float] | None = None
    """By class; those of `local_link` are the same as the flaps', as measured."""
    retransmissions_seconds: float | None = None
    """At most."""
    step_times: StepTimes | None = None
    unseen: tuple[Unseen, ...] = UNSEEN


def waited(flaps: Sequence[Flapped], inputs: Inputs) -> Waited:
    """What these flaps mean to a job; `inputs` says everything else."""
    stalls, deaths = [], 0
    for flap in flaps:
        of_this = replace(inputs, down_seconds=_given(flap.length))
        if regime_of(of_this.likely()) in ("hidden", "absorbed"):
            stalls.append((flap.at_seconds, _stall(of_this)))
        else:
            deaths += 1
    return Waited(flaps=len(flaps), deaths=deaths, seconds=_together(stalls))


def _given(length: Length) -> Given[float]:
    """What is not known well counts as the least that it can have been."""
    likely = length.low if length.is_vague else length.likely
    return Given(likely, length.low, length.high or length.low, "measured")


def _stall(inputs: Inputs) -> Range:
    regime = regime_of(inputs.likely())
    return lost_range(regime, inputs, budget_of(inputs))[0]


def _together(stalls: Sequence[tuple[float, Range]]) -> Range:
    """By when each began: a job that stands still for one flap does not do so again for another."""
    return Range(
        length((at, at + one.low) for at, one in stalls),
        length((at, at + one.likely) for at, one in stalls),
        length((at, at + one.high) for at, one in stalls),
    )


def step_answer(
    training: Training,
    mfu: float,
    measured: float | None,
    fabric: Fabric | None,
    step_times: StepTimes | None = None,
) -> StepAnswer:
    """The projection, and with a measured time the gap and what the fabric has to do with it.

    What traffic showed counts before what the model says.
    """
    projected = training.step_seconds(mfu)
    unseen = UNSEEN if fabric is None or fabric.tellers is None else UNSEEN_BY_HUB
    if measured is None or fabric is None:
        found = None if measured is None else gap(training, mfu=mfu, measured=measured)
        return StepAnswer(projected, measured, found, fabric, step_times=step_times, unseen=unseen)
    share = measured / fabric.over_seconds
    stalls = fabric.stalled_seconds
    local = None if stalls is None else stalls.get("local_link", 0.0)
    lost = fabric.waited.seconds
    return StepAnswer(
        projected_seconds=projected,
        measured_seconds=measured,
        gap=gap(
            training,
            mfu=mfu,
            measured=measured,
            lost_seconds=lost.likely if local is None else local,
            over_seconds=fabric.over_seconds,
        ),
        fabric=fabric,
        flaps_seconds=Range(lost.low * share, lost.likely * share, lost.high * share),
        stalls_seconds=None if stalls is None else {k: s * share for k, s in stalls.items()},
        retransmissions_seconds=_resent_a_step(fabric.resent, measured),
        step_times=step_times,
        unseen=unseen,
    )


def _resent_a_step(resent: Resent | None, measured: float) -> float | None:
    if resent is None or resent.over_seconds <= 0:
        return None
    return measured * min(1.0, resent.most_seconds / resent.over_seconds)
