"""What is written on a terminal covers what is known, and nothing in it steers the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.cli.answers import Interval, Seconds
from flapd.cli.text import moment, printable, span
from flapd.model.times import rfc3339


def interval(earliest_us: int, latest_us: int) -> Interval:
    return Interval(rfc3339(earliest_us * 1000), rfc3339(latest_us * 1000))


@pytest.mark.parametrize(
    ("earliest", "latest", "shown"),
    [
        ("03:12:07.362000", "03:12:07.462000", "2026-11-30 03:12:07.412 ±0.050"),
        ("03:12:07.412000", "03:12:07.412000", "2026-11-30 03:12:07.412 ±0.000"),
        ("03:12:07.412001", "03:12:07.412001", "2026-11-30 03:12:07.412 ±0.001"),
        ("03:12:07.000000", "05:12:07.000000", "2026-11-30 04:12:07.000 ±3600.000"),
    ],
)
def test_a_moment_is_a_middle_and_how_far_it_may_be_off(
    earliest: str, latest: str, shown: str
) -> None:
    day = "2026-11-30T"

    assert moment(Interval(f"{day}{earliest}Z", f"{day}{latest}Z")) == shown


@given(st.integers(0, 2**50), st.integers(0, 2**40))
def test_a_moment_covers_its_interval(earliest_us: int, length_us: int) -> None:
    latest_us = earliest_us + length_us
    shown = moment(interval(earliest_us, latest_us))
    milliseconds = int(shown.partition(".")[2][:3])
    half_us = round(float(shown.rpartition("±")[2]) * 1000) * 1000
    middle_us = (earliest_us + latest_us) // 2 // 1_000_000 * 1_000_000 + milliseconds * 1000

    assert middle_us - half_us <= earliest_us
    assert latest_us <= middle_us + half_us


@pytest.mark.parametrize(
    ("shortest", "longest", "shown"),
    [
        (0.42, 0.61, "0.42\N{EN DASH}0.61 s"),
        (0.4299, 0.6001, "0.42\N{EN DASH}0.61 s"),
        (0.5, 0.5, "0.50 s"),
        (0, 0.001, "0.00\N{EN DASH}0.01 s"),
        (99.0, 100.0, "1.6\N{EN DASH}1.7 min"),
        (240, 240, "4.0 min"),
        (7200, 7300, "2.0\N{EN DASH}2.1 h"),
        (86400 * 10, 86400 * 10, "10.0 d"),
        (None, None, "not known"),
    ],
)
def test_a_span_is_rounded_outwards(
    shortest: float | None, longest: float | None, shown: str
) -> None:
    assert span(Seconds(shortest, longest)) == shown


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    assert printable(text).isprintable()


def test_what_is_printable_stays() -> None:
    assert printable("mlx5_0/1 ±0.050 ü") == "mlx5_0/1 ±0.050 ü"
    assert printable("a\x1b[2Jb\x9b") == "a\N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}"
