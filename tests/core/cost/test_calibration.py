"""Calibration: from stalls that were measured to what a retry takes on this node."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.cost.budget import budget_of
from flapd.core.cost.calibration import Measured, Retry, calibrate, retry_of, with_retry
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.timer import Timer
from flapd.model.given import Given, default, exactly

SHARP = 0.1
T20 = 4.294967296


def stall(number: int, down: float, tau: float, *, timeout: int = 20, port: str = "p1") -> Measured:
    """Of a card whose retries come every `tau` seconds, as sharp as 10 Hz shows it."""
    lasted = tau * max(1, math.ceil(down / tau))
    return Measured(
        stall=f"stall-{port}-{number}",
        flap=f"flap-{number}",
        port=port,
        at_unix_ns=number,
        ib_timeout=timeout,
        retry_cnt=7,
        path_back=(down - SHARP, down + SHARP),
        resumed=(lasted - SHARP, lasted + SHARP),
    )


def of_a_job(timeout: int = 20, **known: Given[Any]) -> Inputs:
    inputs = Inputs(
        gpus=exactly(1024, "environment"),
        down_seconds=exactly(2.0, "measured"),
        ib_timeout=exactly(timeout, "environment"),
    )
    return replace(inputs, **known)


def only(*stalls: Measured) -> Retry:
    (found,) = calibrate(stalls)
    return found


def test_three_short_flaps_tell_what_a_retry_takes() -> None:
    found = only(*(stall(n, 2.0, 2.4 * T20) for n in range(3)))

    factor = found.budget_factor
    assert found.is_enough
    assert found.timer_floor == 0
    assert factor.low <= 2.4 <= factor.high
    assert factor.high - factor.low <= 0.15
    assert found.flaps == ("flap-0", "flap-1", "flap-2")
    assert found.source == "measured on this node (3 flaps)"


def test_two_are_too_few_to_reckon_with() -> None:
    found = only(stall(0, 2.0, T20), stall(1, 2.0, T20))

    assert not found.is_enough
    assert retry_of([found], of_a_job()) is None


def test_flaps_of_several_lengths_tell_how_many_retries_each_took() -> None:
    one = only(stall(0, 10.0, 1.1 * T20))
    several = only(*(stall(n, down, 1.1 * T20) for n, down in enumerate((10.0, 25.0, 5.0))))

    assert one.budget_factor.high > 2, "one, two or three retries explain it alone"
    assert several.budget_factor.low <= 1.1 <= several.budget_factor.high <= 1.2


def test_a_low_timeout_that_takes_longer_than_it_may_met_the_floor_of_the_card() -> None:
    tau = 4.096e-6 * 2**17
    found = only(*(stall(n, 0.3, tau, timeout=14) for n in range(3)))

    timer = with_retry(of_a_job(14), found).likely().timer
    assert found.timer_floor == 17
    assert timer.interval_seconds == pytest.approx(tau, rel=0.2)


def test_what_a_low_timeout_took_tells_nothing_of_a_higher_one() -> None:
    low = only(*(stall(n, 0.3, 0.55, timeout=16) for n in range(3)))
    usual = only(*(stall(n, 2.0, 1.2 * T20) for n in range(3)))

    assert retry_of([low], of_a_job(20)) is None
    assert retry_of([low], of_a_job(16)) is low
    assert retry_of([usual], of_a_job(22)) is usual, "a card's clock is the same"
    assert retry_of([usual], of_a_job(18)) is None
    assert retry_of([low, usual], of_a_job(22)) is usual


def test_what_does_not_fit_those_before_it_takes_them_out_of_force_and_is_told() -> None:
    agreed = [stall(n, 2.0, T20) for n in range(5)]
    odd = stall(5, 2.0, 2 * T20)
    later = [stall(n, 2.0, 2 * T20) for n in (6, 7)]

    broken, again = only(*agreed, odd), only(*agreed, odd, *later)

    assert not broken.is_enough
    assert (broken.flaps, broken.contradicted) == (("flap-5",), 5)
    assert again.is_enough
    assert again.budget_factor.low <= 2.0 <= again.budget_factor.high
    assert again.source == "measured on this node (3 flaps; 5 before those did not fit)"


def test_a_stall_that_no_timer_explains_takes_them_out_of_force_as_well() -> None:
    agreed = [stall(n, 2.0, T20) for n in range(3)]
    late = replace(stall(9, 2.0, T20), resumed=(200.0, 200.2))

    found = only(*agreed, late)

    assert (found.flaps, found.is_enough) == ((), False)
    assert found.contradicted == 4


def test_what_one_port_does_another_of_the_node_may_do() -> None:
    slow = [stall(n, 2.0, 3 * T20, port="p1") for n in range(2)]
    fast = [stall(n, 2.0, 1.5 * T20, port="p2") for n in range(2)]

    found = only(*slow, *fast)

    assert found.is_enough
    assert found.budget_factor.low <= 1.5
    assert found.budget_factor.high >= 3


def test_timeouts_are_kept_apart() -> None:
    found = calibrate([stall(0, 2.0, T20), stall(1, 2.0, 4 * T20, timeout=22)])

    assert [one.ib_timeout for one in found] == [20, 22]


@pytest.mark.parametrize(
    "said",
    [
        {"budget_factor": exactly(1.3, "configuration")},
        {"timer_floor": exactly(17, "option")},
        {"schedule": exactly("adaptive", "measured")},
        {"ib_timeout": default(20, 18, 22)},
    ],
    ids=["factor", "floor", "other timers", "unknown timeout"],
)
def test_what_somebody_said_holds_and_what_is_of_another_kind(
    said: dict[str, Given[Any]],
) -> None:
    found = only(*(stall(n, 2.0, 2 * T20) for n in range(3)))

    assert retry_of([found], replace(of_a_job(), **said)) is None


def test_the_budget_closes_around_what_was_measured() -> None:
    found = only(*(stall(n, 2.0, 2.4 * T20) for n in range(3)))

    before, after = budget_of(of_a_job()), budget_of(with_retry(of_a_job(), found))

    assert before.low < after.low < 7 * 2.4 * T20 < after.high < before.high
    assert after.longest_tick == pytest.approx(2.4 * T20, rel=0.05)


@given(
    st.sampled_from([14, 18, 20, 22]),
    st.floats(1.0, 4.0),
    st.lists(st.floats(0.2, 100.0), min_size=1, max_size=8),
)
def test_the_true_timer_is_always_within_what_is_told(
    timeout: int, factor: float, downs: list[float]
) -> None:
    tau = factor * Timer(ib_timeout=timeout).tick_seconds
    survived = [down for down in downs if math.ceil(down / tau) <= 7]
    for found in calibrate(stall(n, d, tau, timeout=timeout) for n, d in enumerate(survived)):
        timer = Timer(ib_timeout=timeout, floor=found.timer_floor)
        least, most = (
            end * timer.tick_seconds for end in (found.budget_factor.low, found.budget_factor.high)
        )
        assert least <= tau * (1 + 1e-9)
        assert tau <= most * (1 + 1e-9)
        assert found.contradicted == 0
        assert len(found.flaps) == len(survived)


@given(st.permutations([stall(n, d, 1.3 * T20) for n, d in enumerate((2.0, 9.0, 2.0, 30.0))]))
def test_it_does_not_depend_on_the_order_in_which_they_became_known(
    stalls: list[Measured],
) -> None:
    assert calibrate(stalls) == calibrate(sorted(stalls, key=lambda one: one.at_unix_ns))
