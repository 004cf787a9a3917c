import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.fabric.quality import (
    TRAINING_NS,
    Quality,
    bit_error_ratio,
    look,
)
from flapd.model.times import SECOND_NS

HDR, NDR, EDR = 200_000, 400_000, 100_000
BEGIN = 1_000 * SECOND_NS


def watched(rate_mbps: int, *rises: tuple[int, int], until: int) -> tuple[Quality, int]:
    """Looked at each second; each rise is at so many seconds after the training."""
    quality, errors = Quality(), 100
    added = dict(rises)
    begin = BEGIN + TRAINING_NS
    look(quality, BEGIN, errors, rate_mbps)
    for second in range(until + 1):
        errors += added.get(second, 0)
        look(quality, begin + second * SECOND_NS, errors, rate_mbps)
    return quality, begin + until * SECOND_NS


def test_the_ratio_is_errors_by_bits() -> None:
    """27 errors in 720 s at 400 Gb/s."""
    quality, now_ns = watched(NDR, (300, 27), until=720)

    assert bit_error_ratio(quality, now_ns, NDR) == pytest.approx(9.375e-14)
    assert quality.level == "warn"


@pytest.mark.parametrize(("rate_mbps", "enough"), [(NDR, 3), (2 * NDR, 6), (HDR, 3), (EDR, 3)])
def test_it_warns_above_the_limit_and_from_three_errors_on(rate_mbps: int, enough: int) -> None:
    below, _ = watched(rate_mbps, (700, enough - 1), until=720)
    above, _ = watched(rate_mbps, (700, enough), until=720)

    assert (below.level, above.level) == ("good", "warn")


def test_many_errors_in_a_minute_are_critical() -> None:
    quality, _ = watched(NDR, (100, 25), until=101)

    assert quality.level == "critical"


def test_it_is_good_again_once_the_time_without_errors_proves_it() -> None:
    seconds = 7_500
    still, _ = watched(NDR, (100, 30), until=100 + seconds - 1)
    clear, _ = watched(NDR, (100, 30), until=100 + seconds + 1)

    assert (still.level, clear.level) == ("warn", "good")


def test_errors_of_training_do_not_count() -> None:
    quality = Quality()
    look(quality, BEGIN, 0, NDR)
    look(quality, BEGIN + 5 * SECOND_NS, 60_000, NDR)
    for second in range(10, 120):
        look(quality, BEGIN + second * SECOND_NS, 60_000, NDR)

    assert quality.level == "good"
    assert bit_error_ratio(quality, BEGIN + 120 * SECOND_NS, NDR) == 0


@pytest.mark.parametrize(("errors", "rate_mbps"), [(None, NDR), (5, None), (65_535, NDR)])
def test_where_nothing_can_be_told_the_ratio_is_none(
    errors: int | None, rate_mbps: int | None
) -> None:
    quality, now_ns = watched(NDR, until=200)
    look(quality, now_ns + SECOND_NS, errors, rate_mbps)

    assert bit_error_ratio(quality, now_ns + SECOND_NS, rate_mbps) is None


def test_a_reset_by_somebody_is_no_error() -> None:
    quality, now_ns = watched(NDR, until=200)
    look(quality, now_ns + SECOND_NS, 0, NDR)
    look(quality, now_ns + 2 * SECOND_NS, 2, NDR)

    assert sum(rise.errors for rise in quality.rises) == 2


@given(st.lists(st.tuples(st.integers(1, 900), st.integers(0, 70_000)), max_size=60))
def test_the_ratio_is_never_negative_and_memory_is_bounded(
    looks: list[tuple[int, int]],
) -> None:
    quality, now_ns = Quality(), BEGIN
    for gap, errors in looks:
        now_ns += gap * SECOND_NS
        look(quality, now_ns, errors, NDR)
        ratio = bit_error_ratio(quality, now_ns, NDR)
        assert ratio is None or ratio >= 0
        assert len(quality.rises) <= 500
