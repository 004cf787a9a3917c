"""What chance alone would do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.cost.chance import as_many_by_chance, holm, met_by_chance, shares_of_blame

HOUR, YEAR = 3600.0, 365.25 * 86400
WINDOW = 41.064771
OTHERS = 1 / (7.9 * HOUR)


@pytest.mark.parametrize(
    ("rate", "window", "chance"),
    [
        (1 / HOUR, 41.064771, 0.0113421),
        (1 / HOUR, 43.064771, 0.0118912),
        (1 / HOUR, 630.2, 0.160590),
        (2 / 86400, 43.064771, 0.000996373),
        (0.15 / YEAR, 43.064771, 2.04696e-7),
        (1024 * 0.15 / YEAR, 41.064771, 1.99854e-4),
        (8 / HOUR, 41.064771, 0.0872151),
    ],
)
def test_a_flap_may_be_in_the_window_by_chance(rate: float, window: float, chance: float) -> None:
    assert met_by_chance(rate, window) == pytest.approx(chance, rel=5e-6)


@pytest.mark.parametrize(
    ("deadly", "expected"),
    [
        ([0.9], [0.998398, 0.001602]),
        ([0.45065], [0.996806, 0.003194]),
        ([0.001], [0.409181, 0.590819]),
        ([0.9, 0.001], [0.997292, 0.001108, 0.001600]),
        ([0.45065, 0.001], [0.994606, 0.002207, 0.003187]),
    ],
)
def test_blame_is_shared_between_the_flaps_and_everything_else(
    deadly: list[float], expected: list[float]
) -> None:
    found = shares_of_blame([one / WINDOW for one in deadly], OTHERS)

    assert [round(one, 6) for one in found] == expected


@pytest.mark.parametrize(
    ("trials", "hits", "chance", "p_value"),
    [
        (24, 20, 0.01, 1.0227e-36),
        (24, 3, 0.01, 0.00172943),
        (24, 3, 0.0113421, 0.00247076),
        (24, 2, 0.01, 0.0238544),
        (24, 1, 0.0014428670, 0.0340602),
        (6, 4, 0.02, 2.32384e-6),
        (24, 6, 0.05, 0.000962351),
        (5, 5, 0.05, 3.125e-7),
    ],
)
def test_so_many_hits_come_by_chance_so_rarely(
    trials: int, hits: int, chance: float, p_value: float
) -> None:
    assert as_many_by_chance(trials, hits, chance) == pytest.approx(p_value, rel=5e-5 / 10)


def test_having_looked_at_many_ports_counts() -> None:
    assert holm([1e-6, 0.004, 0.03, 0.2]) == pytest.approx([4e-6, 0.012, 0.06, 0.2])
    assert holm([0.2, 1e-6, 0.03, 0.004]) == pytest.approx([0.2, 4e-6, 0.06, 0.012])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_an_adjusted_p_value_is_never_smaller_and_keeps_the_order(values: list[float]) -> None:
    adjusted = holm(values)

    assert all(new >= old for new, old in zip(adjusted, values, strict=True))
    assert max(adjusted) <= 1
    by_value = [adjusted[place] for place in sorted(range(len(values)), key=values.__getitem__)]
    assert by_value == sorted(by_value)


@given(st.lists(st.floats(0, 1), max_size=10), st.floats(1e-9, 1))
def test_all_blame_adds_up_to_one(weights: list[float], others: float) -> None:
    assert sum(shares_of_blame(weights, others)) == pytest.approx(1)
