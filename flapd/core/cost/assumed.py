"""Assumed: how much of a loss rests on what nobody said of this job."""

import math
from collections.abc import Iterator
from typing import Any

from flapd.core.cost.inputs import Inputs
from flapd.model.given import Given
from flapd.model.loss import Parts, Regime


def assumed_share(inputs: Inputs, regime: Regime, parts: Parts) -> float:
    """Between 0 and 1; all of it where the number of GPUs is assumed."""
    if not 0 < parts.lost < math.inf:
        return 0.0
    if inputs.gpus.is_assumed:
        return 1.0
    assumed = sum(
        seconds
        for seconds, needed in _pieces(inputs, regime, parts)
        if any(given.is_assumed for given in needed)
    )
    return min(1.0, assumed / parts.lost)


def _pieces(
    inputs: Inputs, regime: Regime, parts: Parts
) -> Iterator[tuple[float, tuple[Given[Any], ...]]]:
    """Each part of the loss with the inputs that it stands on."""
    timer = (inputs.ib_timeout, inputs.retry_cnt)
    without_path = min(parts.stall, inputs.likely().pathless_seconds)
    yield without_path, (inputs.down_seconds,)
    yield parts.stall - without_path, timer
    yield parts.detect, (inputs.watchdog_seconds,) if regime == "watchdog" else timer
    yield parts.propagation, (inputs.propagation_seconds,)
    yield parts.restart, (inputs.restart_seconds,)
    yield parts.rework, (inputs.checkpoint_age_seconds,)
