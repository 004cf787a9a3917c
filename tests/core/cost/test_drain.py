"""Taking a node out, or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.cost.drain import (
    PRIOR_FLAPS,
    break_even_flaps,
    break_even_per_second,
    drain_gpu_seconds,
    drain_pays,
    expected_per_hour,
    posterior_per_hour,
)
from flapd.core.cost.price import price
from tests.core.cost.vectors import POLICIES, printed

DRAIN = 337_920.0


def test_a_drain_costs_one_checkpoint_and_one_restart_of_the_whole_job() -> None:
    spare = drain_gpu_seconds(gpus=1024, checkpoint_cost_seconds=30, restart_seconds=300)
    node_idle = drain_gpu_seconds(
        gpus=1024,
        checkpoint_cost_seconds=30,
        restart_seconds=300,
        idle_gpus=8,
        repair_seconds=86400,
    )
    job_idle = drain_gpu_seconds(
        gpus=1024,
        checkpoint_cost_seconds=30,
        restart_seconds=300,
        idle_gpus=1024,
        repair_seconds=3600,
    )

    assert spare == DRAIN
    assert node_idle - spare == 691_200
    assert job_idle - spare == 3_686_400


@pytest.mark.parametrize(
    ("policy", "down", "flaps"),
    [
        ("A", 4.29, "76.8341"),
        ("A", 10, "25.6114"),
        ("B", 2, "153.6682"),
        ("A", 60, "0.2650"),
        ("I", 2, "0.1818"),
    ],
)
def test_so_many_flaps_pay_for_a_drain(policy: str, down: float, flaps: str) -> None:
    per_flap = price(replace(POLICIES[policy], down_seconds=down)).gpu_seconds

    found = break_even_flaps(DRAIN, per_flap)

    assert found is not None
    assert printed(found, flaps) == flaps


def test_flaps_that_cost_nothing_never_pay_for_a_drain() -> None:
    assert break_even_flaps(DRAIN, 0) is None
    assert break_even_per_second(DRAIN, 0, 3600) is None
    assert break_even_per_second(DRAIN, 10, 0) is None


@pytest.mark.parametrize(
    ("flaps", "hours", "rate"),
    [(1, 24, "0.00522331"), (2, 24, "0.01043164"), (3, 24, "0.01563997"), (24, 24, "0.12501497")],
)
def test_a_few_flaps_raise_the_rate_a_little(flaps: int, hours: float, rate: str) -> None:
    assert printed(posterior_per_hour(flaps, hours), rate) == rate


def test_the_prior_is_a_week_of_an_ordinary_port() -> None:
    assert printed(PRIOR_FLAPS, "0.0028747") == "0.0028747"


def test_many_flaps_speak_for_themselves() -> None:
    assert expected_per_hour(4, 24) == posterior_per_hour(4, 24)
    assert expected_per_hour(5, 24) == 5 / 24
    assert expected_per_hour(24, 24) == 1


@given(st.floats(1, 1e7), st.floats(1, 1e7), st.floats(60, 1e7), st.floats(1e-6, 10))
def test_a_drain_pays_exactly_above_the_break_even_rate(
    drain: float, per_flap: float, remaining: float, rate: float
) -> None:
    even = break_even_per_second(drain, per_flap, remaining)
    assert even is not None

    for per_hour in (rate * even * 3600, even * 3600 * 1.001, even * 3600 * 0.999):
        pays = drain_pays(
            drain=drain, per_flap=per_flap, flaps_per_hour=per_hour, remaining_seconds=remaining
        )
        if abs(per_hour / 3600 / even - 1) > 1e-9:
            assert pays == (per_hour / 3600 > even)
