"""What a step should take and what it takes."""

import pytest

from flapd.core.cost.step import Training, gap
from tests.core.cost.vectors import printed

TRAINING = Training(parameters=70e9, tokens_per_step=4_194_304, gpus=1024, peak_flops=989e12)


def test_the_projected_step_time_is_as_worked_out() -> None:
    assert printed(TRAINING.step_seconds(0.40), "4.348635") == "4.348635"
    assert printed(TRAINING.step_seconds(0.50), "3.478908") == "3.478908"


def test_at_sixty_percent_of_the_speed_the_rest_is_looked_for() -> None:
    measured = TRAINING.step_seconds(0.40) / 0.6
    found = gap(TRAINING, mfu=0.40, measured=measured, lost_seconds=864, over_seconds=86400)

    assert printed(measured, "7.247725") == "7.247725"
    assert printed(found.achieved_mfu, "0.24") == "0.24"
    assert found.speed_share == pytest.approx(0.6)
    assert found.gap_seconds == pytest.approx(7.247725 - 4.348635, abs=1e-6)
    assert found.fabric_seconds == pytest.approx(measured / 100)
    assert found.unexplained_seconds == pytest.approx(found.gap_seconds - measured / 100)


def test_a_step_faster_than_projected_has_a_negative_gap() -> None:
    found = gap(TRAINING, mfu=0.40, measured=4.0, lost_seconds=0, over_seconds=3600)

    assert found.gap_seconds < 0
    assert found.fabric_seconds == 0
