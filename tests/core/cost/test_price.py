"""The price of one flap: the timer, the regime, the loss."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.cost.answer import per_day
from flapd.core.cost.case import Case
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.price import parts_of, price
from flapd.core.cost.restart import RESTARTS, with_restart
from flapd.core.cost.timer import Timer
from flapd.model.given import exactly
from flapd.model.loss import Regime
from tests.core.cost.vectors import POLICIES, REGIMES, Vector, printed, vectors

A = POLICIES["A"]


def certain(case: Case) -> Inputs:
    """The same as inputs that are known exactly."""
    known = {name: exactly(getattr(case, name), "option") for name in case.__struct_fields__}
    return Inputs(**known)


@pytest.mark.parametrize("vector", vectors(), ids=lambda v: f"{v.policy}-{v.down}")
def test_a_flap_costs_what_was_worked_out_by_hand(vector: Vector) -> None:
    case = replace(POLICIES[vector.policy], down_seconds=float(vector.down))

    found = price(case)

    parts, day = found.parts, per_day(certain(case), found, 3600)
    survived = found.regime == "absorbed"
    assert found.regime == REGIMES[vector.regime]
    assert printed(found.tick_seconds, vector.tick) == vector.tick
    assert printed(found.budget_seconds, vector.budget) == vector.budget
    assert ("-" if not survived else printed(found.resume_seconds, "0.000000")) == vector.resume
    assert ("-" if survived else printed(parts.detect, vector.detect)) == vector.detect
    assert printed(parts.rework, vector.rework) == vector.rework
    assert printed(parts.lost, vector.lost) == vector.lost
    assert printed(found.gpu_seconds, vector.gpu_seconds) == vector.gpu_seconds
    assert printed(found.gpu_seconds / 3600, vector.gpu_hours) == vector.gpu_hours
    assert printed(found.cost, vector.per_flap) == vector.per_flap
    assert printed(day.cost, vector.per_day) == vector.per_day
    assert printed(day.capacity_share * 100, vector.percent) == vector.percent


EDGES: list[tuple[str, dict[str, object], Regime, dict[str, str]]] = [
    ("no time at all", {"down_seconds": 0}, "hidden", {"lost": "0"}),
    (
        "one interval exactly",
        {"down_seconds": 4.294967296},
        "absorbed",
        {"resume": "4.294967296"},
    ),
    ("just over it", {"down_seconds": 4.294968}, "absorbed", {"resume": "8.589934592"}),
    (
        "the budget exactly",
        {"down_seconds": 30.064771072},
        "absorbed",
        {"resume": "30.064771072"},
    ),
    (
        "just over the budget",
        {"down_seconds": 30.064772},
        "transport_abort",
        {"lost": "1245.164771072"},
    ),
    (
        "the first try counts",
        {"down_seconds": 32, "extra_tries": 1},
        "absorbed",
        {"budget": "34.359738368", "resume": "34.359738368"},
    ),
    (
        "just over eight tries",
        {"down_seconds": 34.359739, "extra_tries": 1},
        "transport_abort",
        {"lost": "1249.459738368"},
    ),
    (
        "the last adaptive try",
        {"down_seconds": 29.6, "schedule": "adaptive"},
        "absorbed",
        {"resume": "29.664836480"},
    ),
    (
        "the next adaptive try is past the budget",
        {"down_seconds": 29.8, "schedule": "adaptive"},
        "transport_abort",
        {"lost": "1245.164771"},
    ),
    (
        "very patient",
        {"down_seconds": 300, "ib_timeout": 25},
        "absorbed",
        {"budget": "962.072674", "resume": "412.316860416", "gpu_seconds": "422212.465"},
    ),
    (
        "the watchdog is less patient",
        {"down_seconds": 550, "ib_timeout": 25},
        "watchdog",
        {"resume": "687.19", "lost": "1815.1"},
    ),
    (
        "usable 1 s later",
        {"down_seconds": 2, "usable_after_seconds": 1},
        "absorbed",
        {"resume": "4.294967296"},
    ),
    (
        "usable 3 s later",
        {"down_seconds": 2, "usable_after_seconds": 3},
        "absorbed",
        {"resume": "8.589934592", "gpu_seconds": "8796.093"},
    ),
    (
        "a short timer",
        {"down_seconds": 2, "ib_timeout": 14},
        "transport_abort",
        {"budget": "0.469762048", "lost": "1215.569762"},
    ),
    (
        "a short timer on a card with a floor",
        {"down_seconds": 2, "ib_timeout": 14, "timer_floor": 17},
        "absorbed",
        {"tick": "0.536870912", "budget": "3.758096384", "resume": "2.147483648"},
    ),
    ("8 GPUs", {"down_seconds": 2, "gpus": 8}, "absorbed", {"gpu_seconds": "34.360"}),
    ("128 GPUs", {"down_seconds": 2, "gpus": 128}, "absorbed", {"gpu_seconds": "549.756"}),
    ("512 GPUs", {"down_seconds": 2, "gpus": 512}, "absorbed", {"gpu_seconds": "2199.023"}),
    ("4096 GPUs", {"down_seconds": 2, "gpus": 4096}, "absorbed", {"gpu_seconds": "17592.186"}),
    ("16384 GPUs", {"down_seconds": 2, "gpus": 16384}, "absorbed", {"gpu_seconds": "70368.744"}),
    ("2.00 $", {"down_seconds": 2, "price_per_gpu_hour": 2.0}, "absorbed", {"cost": "2.4434"}),
    ("2.50 $", {"down_seconds": 2, "price_per_gpu_hour": 2.5}, "absorbed", {"cost": "3.0542"}),
    ("4.00 $", {"down_seconds": 2, "price_per_gpu_hour": 4.0}, "absorbed", {"cost": "4.8867"}),
    (
        "overlap hides part",
        {"down_seconds": 0.3, "slack_seconds": 0.5},
        "absorbed",
        {"gpu_seconds": "3886.047"},
    ),
    (
        "overlap hides it",
        {"down_seconds": 0.3, "slack_seconds": 5},
        "hidden",
        {"gpu_seconds": "0"},
    ),
    (
        "overlap hides part of a longer one",
        {"down_seconds": 10, "slack_seconds": 5},
        "absorbed",
        {"gpu_seconds": "8074.140"},
    ),
]


@pytest.mark.parametrize(
    ("changes", "regime", "expected"), [edge[1:] for edge in EDGES], ids=[e[0] for e in EDGES]
)
def test_at_its_edges_the_model_is_exact(
    changes: dict[str, object], regime: Regime, expected: dict[str, str]
) -> None:
    found = price(replace(A, **changes))

    values = {
        "tick": found.tick_seconds,
        "budget": found.budget_seconds,
        "resume": found.resume_seconds,
        "lost": found.parts.lost,
        "gpu_seconds": found.gpu_seconds,
        "cost": found.cost,
    }
    assert found.regime == regime
    assert {name: printed(values[name], like) for name, like in expected.items()} == expected


TIMERS = """
14 0.067108864 0.469762048 0.536870912
17 0.536870912 3.758096384 4.294967296
18 1.073741824 7.516192768 8.589934592
19 2.147483648 15.032385536 17.179869184
20 4.294967296 30.064771072 34.359738368
21 8.589934592 60.129542144 68.719476736
22 17.179869184 120.259084288 137.438953472
23 34.359738368 240.518168576 274.877906944
"""


@pytest.mark.parametrize("line", TIMERS.strip().splitlines())
def test_a_timeout_gives_its_interval_and_its_budgets(line: str) -> None:
    timeout, tick, seven, eight = line.split()
    timer = Timer(ib_timeout=int(timeout))

    assert printed(timer.tick_seconds, tick) == tick
    assert printed(timer.budget_seconds, seven) == seven
    assert printed(replace(timer, extra_tries=1).budget_seconds, eight) == eight


def test_the_adaptive_schedule_doubles_until_it_reaches_the_timer() -> None:
    timer = Timer(schedule="adaptive")
    expected = [
        "0.002",
        "0.006",
        "0.014",
        "0.03",
        "0.062",
        "0.126",
        "0.254",
        "0.51",
        "1.022",
        "2.046",
        "4.094",
        "8.19",
        "12.484967",
        "16.779935",
        "21.074902",
        "25.369869",
        "29.664836",
        "33.959804",
    ]

    tries, elapsed = [], 0.0
    for like in expected:
        elapsed = timer.resume_seconds(elapsed + 1e-9)
        tries.append(printed(elapsed, like))

    assert tries == expected


@pytest.mark.parametrize(
    ("preset", "gpu_seconds", "cost"),
    [
        ("in-process", "92328.726", "64.12"),
        ("automated", "1275048.726", "885.45"),
        ("manual", "5145768.726", "3573.45"),
    ],
)
def test_the_way_a_job_restarts_makes_the_price_of_its_death(
    preset: str, gpu_seconds: str, cost: str
) -> None:
    dies = with_restart(certain(replace(A, down_seconds=60)), preset).likely()
    lives = replace(dies, ib_timeout=22)

    assert printed(price(dies).gpu_seconds, gpu_seconds) == gpu_seconds
    assert printed(price(dies).cost, cost) == cost
    assert printed(price(lives).gpu_seconds, "70368.744") == "70368.744"
    assert printed(price(lives).cost, "48.87") == "48.87"


def test_the_presets_sum_up_as_printed() -> None:
    sums = {
        name: one.propagation_seconds + one.restart_seconds + one.checkpoint_age_seconds
        for name, one in RESTARTS.items()
    }

    assert sums == {"in-process": 60, "automated": 1215, "manual": 4995}


@pytest.mark.parametrize("timeout", [0, 32, 40])
@pytest.mark.parametrize("schedule", ["fixed", "adaptive"])
def test_without_a_timer_only_the_watchdog_ends_it(timeout: int, schedule: str) -> None:
    found = price(replace(A, down_seconds=0.3, ib_timeout=timeout, schedule=schedule))

    assert found.regime == "watchdog"
    assert math.isinf(found.budget_seconds)
    assert found.parts.detect == 600.1


def test_where_nothing_ever_ends_it_the_loss_has_no_end() -> None:
    found = price(replace(A, down_seconds=2, hang=True, watchdog_seconds=math.inf))

    assert math.isinf(found.parts.lost)


def test_failover_costs_the_budget_and_then_some_speed() -> None:
    case = replace(
        POLICIES["C"], down_seconds=60, failover=True, coordinated=False, failover_slowdown=0.5
    )

    found = price(case)

    still = 3.758096384 + 0.01
    assert found.regime == "failover"
    assert found.parts.lost == pytest.approx(still + (60 - still) / 2)
    assert price(replace(case, down_seconds=2)).regime == "absorbed"


def test_a_collective_enqueued_long_ago_meets_its_watchdog_sooner() -> None:
    found = price(replace(A, down_seconds=2, hang=True, enqueued_seconds=100))

    assert found.parts.detect == pytest.approx(500.1)


def test_one_that_comes_while_the_job_is_away_costs_no_more_than_there_is() -> None:
    case = replace(POLICIES["J"], down_seconds=2)

    day = per_day(certain(case), price(case), 1000)

    assert day.capacity_share == 1
    assert day.gpu_seconds == pytest.approx(1024 * 86400)


CASES = st.builds(
    Case,
    gpus=st.integers(1, 20_000),
    down_seconds=st.floats(0, 3000),
    usable_after_seconds=st.floats(0, 30),
    ib_timeout=st.integers(0, 33),
    retry_cnt=st.integers(0, 7),
    timer_floor=st.sampled_from([0, 17]),
    extra_tries=st.sampled_from([0, 1]),
    budget_factor=st.floats(0.5, 8),
    schedule=st.sampled_from(["fixed", "adaptive"]),
    hang=st.booleans(),
    coordinated=st.booleans(),
    failover=st.booleans(),
    failover_slowdown=st.floats(0, 1),
    slack_seconds=st.floats(0, 5),
    watchdog_seconds=st.floats(0, 3600),
    enqueued_seconds=st.floats(0, 100),
    poll_seconds=st.floats(0, 1),
    propagation_seconds=st.floats(0, 600),
    restart_seconds=st.floats(0, 5000),
    checkpoint_age_seconds=st.floats(0, 5000),
)


@given(CASES, st.integers(0, 10_000))
def test_more_gpus_are_never_cheaper(case: Case, more: int) -> None:
    dearer = price(replace(case, gpus=case.gpus + more))

    assert dearer.regime == price(case).regime
    assert dearer.gpu_seconds >= price(case).gpu_seconds >= 0


@given(CASES, st.floats(0, 600))
def test_within_a_regime_a_longer_outage_is_never_cheaper(case: Case, longer: float) -> None:
    short = price(case)
    long = price(replace(case, down_seconds=case.down_seconds + longer))

    if long.regime == short.regime:
        assert long.parts.lost >= short.parts.lost * (1 - 1e-12)


@given(CASES, st.floats(0, 600))
def test_a_longer_outage_never_turns_a_dead_job_into_one_that_lives(
    case: Case, longer: float
) -> None:
    alive = ("hidden", "absorbed")
    longer_one = price(replace(case, down_seconds=case.down_seconds + longer))

    assert longer_one.regime not in alive or price(case).regime in alive


@given(CASES)
def test_the_loss_is_continuous_but_at_regime_borders_and_timer_ticks(case: Case) -> None:
    nudge = 1e-7
    here, there = price(case), price(replace(case, down_seconds=case.down_seconds + nudge))
    is_one_tick = math.isclose(here.resume_seconds, there.resume_seconds, rel_tol=1e-12)

    if here.regime == there.regime and is_one_tick:
        assert there.parts.lost == pytest.approx(here.parts.lost, abs=2 * nudge)


@given(CASES)
def test_traffic_resumes_within_one_interval_after_the_path_is_back(case: Case) -> None:
    timer, seconds = case.timer, case.pathless_seconds

    resume = timer.resume_seconds(seconds)

    assert resume >= seconds * (1 - 1e-9)
    assert resume <= (seconds + timer.interval_seconds) * (1 + 1e-9)
    assert (resume > 0) == (seconds > 0)


@given(CASES)
def test_what_is_lost_is_the_sum_of_its_parts_in_every_regime(case: Case) -> None:
    for regime in REGIMES.values():
        parts = parts_of(regime, case)

        spent = (parts.stall, parts.detect, parts.propagation, parts.restart, parts.rework)
        assert all(one >= 0 for one in spent)
        assert parts.lost == pytest.approx(sum(spent))
