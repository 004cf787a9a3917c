"""Charts of samples: exact for counters of any size, and nothing made up where nothing was read."""

import html
import re
from typing import Any

import msgspec
import pytest

from flapd.core.fabric.catalogue import LINK_DOWNED, STATE
from flapd.model.times import SECOND_NS
from flapd.serve.page.charts import MOST_ROWS, chart_area

SENT = "counters/port_xmit_data"
ERRORS = "counters/symbol_error"
BEGIN_NS = 1_700_000_000 * SECOND_NS


def rows(*values: list[int | None]) -> list[list[int | None]]:
    """A row a second."""
    return [[BEGIN_NS + i * SECOND_NS, *row] for i, row in enumerate(values)]


def drawn(area: str) -> dict[str, Any]:
    """By title."""
    found = re.search(r'data-charts="([^"]*)"', area)
    assert found is not None
    return {chart["title"]: chart for chart in msgspec.json.decode(html.unescape(found[1]))}


def test_rates_are_worked_out_before_numbers_become_inexact() -> None:
    first = 2**62
    table = rows([first], [first + 1_250_000_000], [first + 2_500_000_001])

    chart = drawn(chart_area("a", ["time", SENT], table, "mlx5_core"))["Traffic"]

    assert chart["series"] == [{"label": "sent", "values": [40.0, 40.0]}]
    assert chart["times"] == [1_700_000_001.0, 1_700_000_002.0]


def test_what_was_not_read_and_what_was_reset_has_no_rate() -> None:
    table = rows([100], [None], [350], [10], [260])

    chart = drawn(chart_area("a", ["time", SENT], table, "mlx5_core"))["Traffic"]

    assert chart["series"][0]["values"] == [pytest.approx(0.0), pytest.approx(0.0)]
    assert chart["times"] == [1_700_000_002.0, 1_700_000_004.0]


def test_counters_of_errors_that_moved_are_drawn_and_told_and_others_are_not() -> None:
    table = rows([4, 7, 3], [1, 7, 4], [4, 7, 4])
    area = chart_area("a", ["time", STATE, ERRORS, LINK_DOWNED], table, "mlx5_core")

    charts = drawn(area)
    moved = charts["Error counters that moved: rise"]
    assert moved["series"] == [{"label": "link_downed", "values": [0, 1, 1]}]
    assert charts["State (4 = ACTIVE; physical 5 = LinkUp)"]["series"][0]["values"] == [4, 1, 4]
    assert "<td>link_downed</td>" in area
    assert "symbol_error" not in area


def test_a_counter_that_was_reset_begins_anew_and_says_so() -> None:
    table = rows([200], [203], [2])
    area = chart_area("a", ["time", ERRORS], table, "mlx5_core")

    assert drawn(area)["Error counters that moved: rise"]["series"][0]["values"] == [0, 3, 0]
    assert '<td class="number">reset</td>' in area


def test_long_tables_are_thinned() -> None:
    values: list[list[int | None]] = [[i] for i in range(5 * MOST_ROWS)]
    table = rows(*values)

    chart = drawn(chart_area("a", ["time", ERRORS], table, "mlx5_core"))

    (moved,) = chart.values()
    assert len(moved["times"]) <= MOST_ROWS


def test_without_samples_nothing_is_drawn() -> None:
    assert drawn(chart_area("a", ["time", SENT], [], None)) == {}
