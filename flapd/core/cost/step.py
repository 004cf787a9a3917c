"""Step time: what a training step should take, what it takes, and the fabric's part in it."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

FLOPS_PER_PARAMETER_AND_TOKEN = 6
"""Forward and backward pass of a dense transformer (Kaplan et al., arXiv 2001.08361)."""


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """A dense model in training."""

    parameters: float
    tokens_per_step: float
    gpus: int
    peak_flops: float
    """Of one GPU, a second."""

    def step_seconds(self, mfu: float) -> float:
        """At this model FLOPS utilisation."""
        return self._ideal_seconds / mfu

    def mfu(self, step_seconds: float) -> float:
        """Model FLOPS utilisation that this step time means."""
        return self._ideal_seconds / step_seconds

    @property
    def _ideal_seconds(self) -> float:
        work = FLOPS_PER_PARAMETER_AND_TOKEN * self.parameters * self.tokens_per_step
        return work / (self.gpus * self.peak_flops)


class Gap(msgspec.Struct, frozen=True):
    """Projected against measured, in seconds of each step."""

    projected_seconds: float
    measured_seconds: float
    achieved_mfu: float
    speed_share: float
    """Of the projected speed."""
    gap_seconds: float
    """Negative: faster than projected."""
    fabric_seconds: float
    """What flaps and stalls took of each step, on average."""
    unexplained_seconds: float
    """Not a link, or not one that flapd sees."""


def gap(
    training: Training,
    *,
    mfu: float,
    measured: float,
    lost_seconds: float = 0.0,
    over_seconds: float = 1.0,
) -> Gap:
    """`lost_seconds` is what the fabric cost the job within `over_seconds` of running."""
    projected = training.step_seconds(mfu)
    fabric = measured * lost_seconds / over_seconds
    return Gap(
        projected_seconds=projected,
        measured_seconds=measured,
        achieved_mfu=training.mfu(measured),
        speed_share=projected / measured,
        gap_seconds=measured - projected,
        fabric_seconds=fabric,
        unexplained_seconds=measured - projected - fabric,
    )


class Spread(msgspec.Struct, frozen=True):
    """Of step times, in seconds."""

    steps: int
    min: float
    median: float
    max: float


class StepTimes(msgspec.Struct, frozen=True):
    """Step times as the training printed them."""

    all: Spread
    by_rank: dict[str, Spread]
    """Empty where fewer than two ranks print any, as in most frameworks."""


def step_times(by_rank: Mapping[str, Sequence[float]]) -> StepTimes | None:
    """By whom printed them; None where there are none."""
    spreads = {name: _spread(times) for name, times in sorted(by_rank.items()) if times}
    if not spreads:
        return None
    every = [seconds for times in by_rank.values() for seconds in times]
    return StepTimes(_spread(every), spreads if len(spreads) > 1 else {})


def _spread(times: Iterable[float]) -> Spread:
    ordered = sorted(times)
    return Spread(len(ordered), ordered[0], _median(ordered), ordered[-1])


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
