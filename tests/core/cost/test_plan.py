"""Which nodes to drain, and never a herd of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.cost.plan import (
    HERD_NODES,
    Asked,
    Down,
    PortPlan,
    drain_plan,
    draining,
    most_drains,
)

DRAIN = 337_920.0
STALL = 4398.046511
DEATH = 1_275_048.726
DAY = 86_400.0
NOW = 100 * DAY


def asked(**changes: Any) -> Asked:
    fields: dict[str, Any] = {
        "now_seconds": NOW,
        "span_hours": 24.0,
        "drain_gpu_seconds": DRAIN,
        "remaining_seconds": 30 * DAY,
        "most": 1,
        "ports_of": {"node17": 8},
    }
    return Asked(**{**fields, **changes})


def hourly(port: str = "mlx5_3/1", lost: float = STALL, node: str = "node17") -> list[Down]:
    return [Down(node, port, NOW - 3600 * hour - 100, lost) for hour in range(24)]


def steps(plan: list[PortPlan]) -> dict[str, str]:
    return {f"{one.node} {one.port}": one.step for one in plan}


def test_an_hourly_flap_that_stalls_pays_for_a_drain_after_three_days() -> None:
    (found,) = drain_plan(hourly(), asked())

    assert (found.flaps, found.per_hour) == (24, 1.0)
    assert found.break_even_flaps == pytest.approx(76.8341, abs=1e-4)
    assert found.pays_after_seconds is not None
    assert found.pays_after_seconds == pytest.approx(76.8341 * 3600, rel=1e-6)
    assert found.pays_after_seconds / DAY == pytest.approx(3.2, abs=0.01)
    assert found.step == "drain"


def test_for_a_job_that_ends_before_that_it_does_not_pay() -> None:
    assert steps(drain_plan(hourly(), asked(remaining_seconds=2 * DAY))) == {
        "node17 mlx5_3/1": "leave"
    }


def test_a_flap_that_kills_pays_before_it_happens_again() -> None:
    (found,) = drain_plan(hourly(lost=DEATH), asked(remaining_seconds=DAY))

    assert found.break_even_flaps == pytest.approx(0.2650, abs=1e-4)
    assert found.step == "drain"


def test_a_single_flap_raises_the_expected_rate_a_little() -> None:
    (found,) = drain_plan(hourly()[:1], asked())

    assert found.per_hour == pytest.approx(0.00522331, abs=1e-8)
    assert found.step == "leave"


def test_the_rate_is_that_of_the_day_or_of_the_whole_time_whichever_is_worse() -> None:
    seldom = [Down("node17", "mlx5_3/1", NOW - 2 * DAY * n - 1, STALL) for n in range(1, 16)]

    (found,) = drain_plan(seldom, asked(span_hours=720.0))

    assert found.per_hour == pytest.approx(15 / 720)


def test_the_port_that_costs_most_comes_first_however_seldom_it_flaps() -> None:
    often, deadly = hourly("mlx5_0/1"), hourly("mlx5_1/1", DEATH)[:5]

    plan = drain_plan([*often, *deadly], asked())

    assert [one.port for one in plan] == ["mlx5_1/1", "mlx5_0/1"]


def test_what_all_ports_of_a_node_did_together_counts_for_none() -> None:
    every = [Down("node17", f"mlx5_{n}/1", NOW - 500 + n, DEATH) for n in range(8)]

    plan = drain_plan(every, asked())

    assert {one.step for one in plan} == {"leave"}
    assert sum(one.shared for one in plan) == 8
    assert sum(one.flaps for one in plan) == 0


def test_what_all_but_one_did_counts() -> None:
    most = [Down("node17", f"mlx5_{n}/1", NOW - 500, DEATH) for n in range(7)]

    assert sum(one.flaps for one in drain_plan(most, asked())) == 7


def test_one_port_of_its_node_has_nobody_to_share_with() -> None:
    alone = asked(ports_of={"node17": 1})

    assert steps(drain_plan(hourly(lost=DEATH), alone)) == {"node17 mlx5_3/1": "drain"}


@pytest.mark.parametrize(("nodes", "step"), [(2, "drain"), (HERD_NODES, "leave")])
def test_several_nodes_at_once_share_a_cause(nodes: int, step: str) -> None:
    """A switch that flaps once an hour for all of them."""
    downs = [one for n in range(nodes) for one in hourly(lost=DEATH, node=f"node{n}")]
    sizes = {f"node{n}": 8 for n in range(nodes)}

    plan = drain_plan(downs, asked(ports_of=sizes, most=99))

    assert {one.step for one in plan} == {step}


def test_no_more_nodes_are_drained_than_allowed_and_the_others_wait() -> None:
    downs = [
        Down(f"node{n}", "mlx5_0/1", NOW - 3600 * hour - 200 * n, DEATH)
        for n in range(10)
        for hour in range(6)
    ]

    plan = drain_plan(downs, asked(ports_of={f"node{n}": 8 for n in range(10)}, most=2))

    told = [one.step for one in plan]
    assert told == ["drain"] * 2 + ["wait"] * 8


def test_all_ports_of_a_drained_node_go_with_it() -> None:
    shifted = [
        Down("node17", "mlx5_1/1", one.at_seconds + 900, one.lost_gpu_seconds)
        for one in hourly(lost=DEATH)
    ]

    assert set(steps(drain_plan([*hourly(lost=DEATH), *shifted], asked())).values()) == {"drain"}


@pytest.mark.parametrize(("nodes", "most"), [(0, 1), (1, 1), (199, 1), (200, 2), (12_500, 125)])
def test_one_node_in_a_hundred_may_be_drained_and_at_least_one(nodes: int, most: int) -> None:
    assert most_drains(nodes) == most


def test_without_ports_the_break_even_is_told_all_the_same() -> None:
    found = draining(STALL, [], asked())

    assert found.break_even_flaps == pytest.approx(76.8341, abs=1e-4)
    assert found.break_even_per_hour == pytest.approx(76.8341 / 720, abs=1e-5)
    assert found.ports == ()


def test_flaps_that_cost_nothing_never_pay() -> None:
    found = draining(0.0, hourly(lost=0.0), asked())

    assert found.break_even_flaps is found.break_even_per_hour is None
    assert (found.ports[0].pays_after_seconds, found.ports[0].step) == (None, "leave")


def test_a_loss_without_end_pays_at_once() -> None:
    (found,) = drain_plan(hourly(lost=float("inf")), asked())

    assert (found.break_even_flaps, found.step) == (0.0, "drain")


DOWNS = st.lists(
    st.builds(
        Down,
        st.sampled_from([f"n{n}" for n in range(6)]),
        st.sampled_from(["a/1", "b/1"]),
        st.floats(NOW - 3 * DAY, NOW),
        st.sampled_from([0.0, STALL, DEATH]),
    ),
    max_size=60,
)


@given(DOWNS, st.integers(1, 3), st.randoms())
def test_never_a_herd_and_never_another_plan_for_the_same_flaps(
    downs: list[Down], most: int, random: Any
) -> None:
    sizes = dict.fromkeys((one.node for one in downs), 2)
    plan = drain_plan(downs, asked(most=most, ports_of=sizes))
    shuffled = list(downs)
    random.shuffle(shuffled)

    assert len({one.node for one in plan if one.step == "drain"}) <= most
    assert sum(one.flaps + one.shared for one in plan) == len(downs)
    again = drain_plan(shuffled, asked(most=most, ports_of=sizes))
    assert [(one.port, one.step, one.flaps) for one in again] == [
        (one.port, one.step, one.flaps) for one in plan
    ]
