"""The model of a flap's price beside a simulated job, which knows none of its formulas.

FLAPD_SEED chooses the cases; a tenth of the 500 runs with every `make test`, all with `long`.
"""

import math
import os
import statistics
import sys
from collections import Counter

import pytest

from flapd.core.cost.estimate import Estimate, estimate
from flapd.core.cost.overlap import hidden_chance
from flapd.core.cost.price import price
from flapd.model.given import exactly
from tests.core.cost.simulated import Simulated, known, one_case, seen

SEED = int(os.environ.get("FLAPD_SEED", "1"))
COUNTS = [50, pytest.param(500, marks=pytest.mark.long)]


def cases(count: int, *, exact: bool) -> list[Simulated]:
    show(f"FLAPD_SEED={SEED}")
    return [one_case(SEED * 100_000 + number, exact=exact) for number in range(count)]


def checkpoint_age(case: Simulated) -> float:
    return case.outage.at_seconds - case.spec.start_up_seconds


@pytest.mark.parametrize("count", COUNTS)
def test_the_price_is_right_where_data_moves_at_the_down_and_timers_are_nominal(
    count: int,
) -> None:
    regimes: Counter[str] = Counter()
    for case in cases(count, exact=True):
        symptom = case.symptom
        assert symptom is not None
        certain = known(
            case,
            propagation_seconds=exactly(symptom.lost.propagation, "measured"),
            restart_seconds=exactly(symptom.lost.restart, "measured"),
            checkpoint_age_seconds=exactly(checkpoint_age(case), "log"),
        )
        modelled = price(certain.likely())
        regimes[modelled.regime] += 1

        assert modelled.regime == seen(symptom), case
        assert modelled.gpu_seconds == pytest.approx(symptom.gpu_seconds, rel=0.02), case
    show(f"{dict(regimes)}")
    assert {"absorbed", "transport_abort"} <= set(regimes)


@pytest.mark.parametrize("count", COUNTS)
def test_the_estimate_holds_what_was_lost_where_timers_and_moments_are_drawn(count: int) -> None:
    inside: Counter[str] = Counter()
    outside: Counter[str] = Counter()
    ratios = []
    for case in cases(count, exact=False):
        regime = seen(case.symptom)
        age = exactly(checkpoint_age(case), "log")
        found = estimate(known(case, checkpoint_age_seconds=age), observed=regime)
        lost = 0.0 if case.symptom is None else case.symptom.gpu_seconds
        (inside if _holds(found, lost) else outside)[regime] += 1
        ratios.append(_spread(found))
    show(f"inside {dict(inside)}, outside {dict(outside)}")
    show(f"high/low: median {statistics.median(ratios):.2f}")

    assert inside.total() >= 0.95 * count
    assert statistics.median(ratios) <= 5.0


@pytest.mark.parametrize("count", COUNTS)
def test_what_was_not_seen_to_end_is_told_with_the_chance_of_each_end(count: int) -> None:
    """Nobody saw what became of it: the range holds all that is likely enough."""
    inside = 0
    for case in cases(count, exact=False):
        age = exactly(checkpoint_age(case), "log")
        phase = case.spec.steps.phases[0]
        gap, period = phase.compute_seconds, phase.compute_seconds + phase.communicate_seconds
        hidden = hidden_chance(gap, period, case.outage.down_seconds)
        found = estimate(known(case, checkpoint_age_seconds=age), hidden_chance=hidden)
        inside += _holds(found, 0.0 if case.symptom is None else case.symptom.gpu_seconds)
    show(f"{inside} of {count} inside")

    assert inside >= 0.9 * count


def show(text: str) -> None:
    """Seen with `pytest -s`, and beside a failure."""
    sys.stdout.write(f"{text}\n")


def _spread(found: Estimate) -> float:
    low, high = found.gpu_seconds.low, found.gpu_seconds.high
    if high == 0:
        return 1.0
    return math.inf if low == 0 else high / low


def _holds(found: Estimate, lost: float) -> bool:
    return found.gpu_seconds.low <= lost <= found.gpu_seconds.high
