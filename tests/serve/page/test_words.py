"""Times, lengths and money as the page writes them."""

import pytest

from flapd.serve.items import Estimate, Interval, Seconds
from flapd.serve.job_items import CostItem
from flapd.serve.page.html import join
from flapd.serve.page.words import gpu_hours, instant, length, moment, money, spread


@pytest.mark.parametrize(
    ("low", "high", "written"),
    [
        (0.4194, 0.6001, "0.41\N{EN DASH}0.61 s"),
        (2.0, 2.0, "2.00 s"),
        (0.0, 0.2, "0.00\N{EN DASH}0.20 s"),
        (120.0, 126.0, "2.0\N{EN DASH}2.1 min"),
        (None, None, "not known"),
    ],
)
def test_a_length_covers_what_it_may_have_been(low: float, high: float, written: str) -> None:
    assert length(Seconds(low, high)) == written


def test_an_interval_is_its_middle_and_how_far_off_it_may_be() -> None:
    told = Interval("2026-11-30T03:12:07.400000Z", "2026-11-30T03:12:07.500000Z")
    assert join(moment(told)) == (
        '<time datetime="2026-11-30T03:12:07.450Z">2026-11-30 03:12:07.450'
        "<small> ±0.050</small></time>"
    )


def test_a_time_that_nobody_knows_is_not_known() -> None:
    assert instant(None) == moment(None) == "not known"


def test_what_has_no_end_says_so_and_what_is_not_known_is_not_nothing() -> None:
    assert spread(Estimate(1.0, None, None)) == "without end (1 to without end)"
    assert gpu_hours(Estimate(3600.0, 7200.0, 7200.0)) == "2.0 (1.0 to 2.0)"
    assert gpu_hours(None) == money(None) == "not known"
    assert money(CostItem(1.0, 2.5, 1000.0, "USD")) == "2.50 (1.00 to 1,000.00) USD"
