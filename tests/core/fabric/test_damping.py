"""The score of a port that flaps, at the defaults: numbers worked out by hand."""

import math

import pytest

from flapd.core.fabric.damping import Damping, add_downs, let_time_pass, penalty_at
from flapd.core.fabric.settings import FlapSettings
from flapd.model.times import SECOND_NS

USUAL = FlapSettings()
HOUR_NS = 3600 * SECOND_NS


def scores(every_hours: float, flaps: int) -> list[float]:
    """After each of so many flaps."""
    damping, found = Damping(), []
    for number in range(flaps):
        at_ns = round(number * every_hours * HOUR_NS)
        add_downs(damping, 1, at_ns, USUAL, at_ns)
        found.append(damping.penalty)
    return found


def test_an_hourly_flap_makes_a_port_suspect_at_the_third() -> None:
    assert [round(score, 1) for score in scores(1, 3)] == [1000.0, 1890.9, 2684.6]


@pytest.mark.parametrize(("every_hours", "limit"), [(6, 2000.0), (24, 1066.7)])
def test_flaps_at_longer_periods_settle_at_a_score(every_hours: float, limit: float) -> None:
    assert scores(every_hours, 40)[-1] == pytest.approx(limit, abs=0.05)


def test_a_port_clears_when_its_score_has_fallen_far_enough() -> None:
    damping = Damping(2500.0, 0, flapping=True)
    clears_ns = round(10.4218 * HOUR_NS)

    let_time_pass(damping, clears_ns - 60 * SECOND_NS, USUAL)
    assert damping.flapping
    let_time_pass(damping, clears_ns + 60 * SECOND_NS, USUAL)
    assert not damping.flapping
    assert math.isclose(penalty_at(damping, clears_ns, USUAL.half_life.ns), 750, rel_tol=1e-4)
