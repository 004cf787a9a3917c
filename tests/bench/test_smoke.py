"""Every benchmark works; how fast anything is, is no business of a test."""

from math import isfinite

import pytest

from tests.bench.__main__ import BENCHES, table_of
from tests.bench.figure import TINY, Bench, Figure, percentile

pytestmark = pytest.mark.system


@pytest.mark.parametrize("bench", BENCHES.values(), ids=BENCHES)
def test_it_gives_figures(bench: Bench) -> None:
    figures = bench(TINY)

    assert figures
    for figure in figures:
        assert figure.value is None or (isfinite(figure.value) and figure.value >= 0), figure
        assert figure.value is not None or figure.note
    assert table_of(figures).row_count == len(figures)


@pytest.mark.parametrize(
    ("value", "at_least", "holds"),
    [
        (None, False, None),
        (1.0, False, True),
        (2.1, False, False),
        (1.9, True, False),
        (2.0, True, True),
    ],
)
def test_a_budget_holds_or_is_broken(
    value: float | None, at_least: bool, holds: bool | None
) -> None:
    figure = Figure(what="it", unit="ms", value=value, budget=2, at_least=at_least)

    assert figure.holds is holds


def test_a_percentile_is_a_value_that_was_there() -> None:
    values = [float(number) for number in range(100)]

    assert [percentile(values, share) for share in (0.5, 0.99, 0.999)] == [50.0, 99.0, 99.0]
    assert percentile([3.0], 0.5) == 3.0
