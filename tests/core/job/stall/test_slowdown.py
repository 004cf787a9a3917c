"""A job that moves less than it used to is told of; ordinary variation is not."""

import random

import pytest

from flapd.core.job.stall.slowdown import Speed
from flapd.core.job.stall.watch import StallWatch
from flapd.model.stall import Slowdown
from flapd.model.times import SECOND_NS
from tests.core.job.stall.traffic import bursts, run, watch_of


def blocks(speed: Speed, rates: list[float], begin: int = 0) -> list[Slowdown]:
    """Ten seconds at each rate, in bytes a second."""
    told = []
    speed.add(begin * 10 * SECOND_NS, 0)
    for number, rate in enumerate(rates):
        end_ns = (begin + number + 1) * 10 * SECOND_NS
        speed.add(end_ns, round(rate * 10))
        changed = speed.close("4711", end_ns)
        told += [] if changed is None else [changed]
    return told


def varying(count: int, mean: float = 1e9, sigma: float = 1e7, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [chance.gauss(mean, sigma) for _ in range(count)]


def test_ordinary_variation_is_no_slowdown() -> None:
    assert blocks(Speed(), varying(1000)) == []


@pytest.mark.parametrize(("deviations", "within"), [(2, 10), (4, 5)])
def test_a_lasting_fall_is_told_after_few_blocks(deviations: int, within: int) -> None:
    """h = 8, k = 0.5: a fall by 2 deviations takes 8 / 1.5 blocks, by 4 it takes 8 / 3.5."""
    speed = Speed()
    blocks(speed, varying(200))

    (slow,) = blocks(speed, varying(30, mean=1e9 - deviations * 1e7, seed=2), begin=200)

    assert slow.usual_bytes_per_second == pytest.approx(1e9, rel=0.01)
    assert slow.begin_ns / SECOND_NS >= 1990
    assert speed.slow == slow
    first = next(n for n in range(1, 31) if _alarms(deviations, n))
    assert first <= within


def _alarms(deviations: int, count: int) -> bool:
    speed = Speed()
    blocks(speed, varying(200))
    return bool(blocks(speed, varying(count, mean=1e9 - deviations * 1e7, seed=2), begin=200))


def test_a_slowdown_ends_when_the_speed_is_back() -> None:
    speed = Speed()
    blocks(speed, varying(200))

    begun, over = blocks(speed, [5e8] * 30 + varying(60, seed=3), begin=200)

    assert begun.end_ns is None
    assert over.begin_ns == begun.begin_ns
    assert over.end_ns is not None


def test_half_the_traffic_over_whole_steps_is_a_slowdown_and_no_stall() -> None:
    watch: StallWatch = watch_of()
    totals: dict[str, float] = {}
    steps = list(bursts(1300.0))
    assert run(watch, steps, 1000.0, totals=totals) == []

    told = run(watch, steps, 1200.0, begin=1000.0, speed=0.4, totals=totals)

    assert [type(one) for one in told] == [Slowdown]
