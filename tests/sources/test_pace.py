from hypothesis import given
from hypothesis import strategies as st

from flapd.core.fabric.catalogue import Tier
from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.sources.pace import SLOWABLE, SLOWEST, Pace, Swept, within_budget

INTERVAL_NS = 100 * MILLISECOND_NS


class Clock:
    """Sweeps one after the other, as the pace wants them."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.now_ns = 0

    def sweep(self, took_ns: int, times: int = 10) -> int:
        for _ in range(times):
            interval_ns = INTERVAL_NS * self.pace.factor
            self.now_ns += max(interval_ns, took_ns)
            self.pace.take(Swept("fast", interval_ns, self.now_ns, took_ns))
        return self.pace.factor


def test_quick_sweeps_are_made_as_often_as_configured() -> None:
    assert Clock().sweep(MILLISECOND_NS, 1000) == 1


def test_ten_sweeps_that_take_a_quarter_of_their_interval_double_it() -> None:
    clock = Clock()

    assert clock.sweep(25 * MILLISECOND_NS, 9) == 1
    assert clock.sweep(25 * MILLISECOND_NS, 1) == 2
    assert clock.sweep(25 * MILLISECOND_NS, 1000) == 2


def test_intervals_grow_to_eight_times_and_no_further() -> None:
    assert Clock().sweep(10 * SECOND_NS, 1000) == SLOWEST == 8


def test_one_sweep_that_hangs_slows_nothing() -> None:
    clock = Clock()
    clock.sweep(65 * SECOND_NS, 1)

    assert clock.sweep(MILLISECOND_NS, 20) == 1


def test_what_was_slow_is_read_as_configured_again_after_calm_minutes() -> None:
    clock = Clock()
    clock.sweep(90 * MILLISECOND_NS, 20)
    assert clock.pace.factor == 4
    slowed_ns = clock.now_ns
    while clock.sweep(MILLISECOND_NS) == 4:
        pass
    assert clock.now_ns - slowed_ns >= 60 * SECOND_NS
    halved_ns = clock.now_ns
    while clock.sweep(MILLISECOND_NS) == 2:
        pass
    assert clock.now_ns - halved_ns >= 60 * SECOND_NS
    assert clock.pace.factor == 1


def test_what_would_be_too_slow_again_stays_slowed() -> None:
    """Half the interval would make the share too large at once."""
    clock = Clock()
    clock.sweep(30 * MILLISECOND_NS)

    assert clock.sweep(15 * MILLISECOND_NS, 2000) == 2


IB_HCA: dict[Tier, float] = {"fast": 20.0, "slow": 22.0, "rare": 1.0}
"""Commands a second at defaults, on mlx5."""


def node_of(devices: int) -> dict[str, dict[Tier, float]]:
    return {f"mlx5_{number}": IB_HCA for number in range(devices)}


def test_a_node_within_its_budget_is_not_slowed() -> None:
    factors = within_budget(node_of(8), 450)

    assert all(factor == 1 for tiers in factors.values() for factor in tiers.values())


def test_slow_sweeps_are_slowed_before_fast_ones_that_date_outages() -> None:
    factors = within_budget(node_of(16), 450)

    assert {tiers["fast"] for tiers in factors.values()} == {1}
    assert {tiers["slow"] for tiers in factors.values()} <= {2, 4}


def test_fast_sweeps_are_slowed_where_nothing_else_helps() -> None:
    factors = within_budget(node_of(30), 450)

    assert {tiers["slow"] for tiers in factors.values()} == {SLOWEST}
    assert 2 in {tiers["fast"] for tiers in factors.values()}


def test_the_dearest_device_is_slowed_first() -> None:
    costs: dict[str, dict[Tier, float]] = {"mlx5_0": {"slow": 300.0}, "mlx5_1": {"slow": 250.0}}

    assert within_budget(costs, 450) == {"mlx5_0": {"slow": 2}, "mlx5_1": {"slow": 1}}


COSTS = st.dictionaries(
    st.text(max_size=4),
    st.fixed_dictionaries(
        {tier: st.floats(min_value=0, max_value=1e5) for tier in ("fast", "slow")}
    ),
)


@given(COSTS)
def test_a_budget_is_kept_unless_all_is_as_slow_as_can_be(
    costs: dict[str, dict[Tier, float]],
) -> None:
    factors = within_budget(costs, 450)

    pairs = [(costs[device][tier], factors[device][tier]) for device in costs for tier in SLOWABLE]
    assert sum(cost / factor for cost, factor in pairs) <= 450 or all(
        factor == SLOWEST for cost, factor in pairs if cost
    )
