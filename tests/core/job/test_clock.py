"""The time of a message: years and zones inferred, contradictions told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.job.clock import Clock, timed, with_zone
from flapd.model.times import SECOND_NS
from tests.core.job.parts import utc

HOUR_NS = 3600 * SECOND_NS
MS = 1_000_000


@pytest.mark.parametrize(
    ("stamp", "arrived", "expected"),
    [
        ("1130 08:32:11.5", (2026, 11, 30, 8, 32, 12), (2026, 11, 30, 8, 32, 11, 500_000_000)),
        ("131 08:32:11.5", (2026, 1, 31, 8, 32, 12), (2026, 1, 31, 8, 32, 11, 500_000_000)),
        ("1231 23:59:59.9", (2027, 1, 1, 0, 0, 1), (2026, 12, 31, 23, 59, 59, 900_000_000)),
        ("101 00:00:00.1", (2027, 1, 1, 0, 0, 1), (2027, 1, 1, 0, 0, 0, 100_000_000)),
        ("229 12:00:00.0", (2028, 2, 29, 12, 0, 1), (2028, 2, 29, 12, 0, 0)),
        ("2026-11-30 08:32:11", (2026, 11, 30, 8, 32, 12), (2026, 11, 30, 8, 32, 11)),
        ("2026-11-30_08:32:11.25", (2026, 11, 30, 8, 32, 12), (2026, 11, 30, 8, 32, 11, 250 * MS)),
        ("2026-11-30 08:32:11,250", (2026, 11, 30, 8, 32, 12), (2026, 11, 30, 8, 32, 11, 250 * MS)),
    ],
)
def test_a_stamp_that_agrees_with_the_arrival_is_believed(
    stamp: str, arrived: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    found = timed(stamp, Clock(arrived_ns=utc(*arrived)))

    assert found.time_ns == found.logged_ns == utc(*expected)
    assert found.error_ns == (0 if "." in stamp or "," in stamp else SECOND_NS)


@given(st.integers(-48, 56), st.integers(0, 1_900_000_000))
def test_a_wrong_zone_is_found_out_and_told(quarters: int, late_ns: int) -> None:
    """A live line comes within two seconds; all zones are whole quarters of an hour off."""
    written = utc(2026, 6, 15, 12, 0, 0)
    stamp = _stamp(written + quarters * 900 * SECOND_NS)

    found = timed(stamp, Clock(arrived_ns=written + late_ns))

    assert found.time_ns == written
    assert found.error_ns == (2 * SECOND_NS if quarters else SECOND_NS) or late_ns == 0


def test_a_line_that_was_buffered_keeps_its_time() -> None:
    written = utc(2026, 6, 15, 12, 0, 0)

    found = timed(_stamp(written), Clock(arrived_ns=written + 600 * SECOND_NS))

    assert found.time_ns == written


def test_a_stamp_that_contradicts_the_arrival_is_not_believed() -> None:
    arrived = utc(2026, 6, 15, 12, 0, 0)
    stamp = _stamp(arrived + 400 * SECOND_NS)

    found = timed(stamp, Clock(arrived_ns=arrived))

    assert found.time_ns == arrived
    assert found.error_ns == 400 * SECOND_NS
    assert found.logged_ns == arrived + 400 * SECOND_NS


def test_the_assumed_zone_is_used() -> None:
    found = timed("2026-11-30 08:32:11", Clock(utc_offset_seconds=3600))

    assert found.time_ns == utc(2026, 11, 30, 7, 32, 11)
    assert found.arrived_ns is None


def test_without_stamp_the_arrival_is_the_time_and_without_both_there_is_none() -> None:
    arrived = utc(2026, 6, 15, 12, 0, 0)

    assert timed(None, Clock(arrived_ns=arrived)).time_ns == arrived
    assert timed(None, Clock()).time_ns is None
    assert timed("1130 08:32:11.5", Clock()).time_ns is None


def test_the_runtime_that_took_the_line_knows_better_when_it_came() -> None:
    taken = utc(2026, 6, 15, 12, 0, 0)

    assert timed(None, Clock(arrived_ns=taken + HOUR_NS), taken).time_ns == taken


def test_a_year_that_somebody_says_is_taken() -> None:
    found = timed("1130 08:32:11.5", Clock(year=2024, reference_ns=utc(2026, 1, 1, 0, 0, 0)))

    assert found.time_ns == utc(2024, 11, 30, 8, 32, 11, 500_000_000)


@pytest.mark.parametrize(
    "stamp",
    [
        *("1332 08:32:11.5", "231 08:32:11.5", "2026-02-30 08:32:11", "x"),
        *("9999-12-31 08:32:11", "0001-01-01 08:32:11"),
    ],
)
def test_a_moment_that_does_not_exist_is_none(stamp: str) -> None:
    assert timed(stamp, Clock(reference_ns=utc(2026, 6, 1, 0, 0, 0))).time_ns is None


def test_a_stamp_with_a_zone_needs_no_assumption() -> None:
    expected = utc(2026, 11, 30, 8, 32, 11, 500_000_000)

    assert with_zone("2026-11-30T08:32:11.5Z") == expected
    assert with_zone("2026-11-30T14:02:11.5+05:30") == expected
    assert with_zone("2026-11-30T08:32:11.5") is None


def _stamp(unix_ns: int) -> str:
    seconds = unix_ns // SECOND_NS % 86400
    days = (unix_ns - utc(2026, 6, 1, 0, 0, 0)) // (86400 * SECOND_NS)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"2026-06-{days + 1:02} {clock}"
