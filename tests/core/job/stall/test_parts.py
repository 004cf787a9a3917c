"""The parts of the stall detector: spans of a port, gaps of a job, its period."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.job.stall.period import Busy
from flapd.core.job.stall.rhythm import Rhythm
from flapd.core.job.stall.traffic import PortTraffic, Span
from flapd.model.times import SECOND_NS
from tests.core.job.stall.traffic import SAMPLE_NS, bursts

RATE = 50e9
THRESHOLD = 5_000_000
"""A thousandth of 400 Gb/s in a tenth of a second."""


def fed(*samples: tuple[int, int]) -> tuple[PortTraffic, list[Span | None]]:
    """Samples of (tenth of a second, bytes in all)."""
    port, spans = PortTraffic(RATE), []
    for tenth, total in samples:
        span = port.span_to(tenth * SAMPLE_NS, total)
        port.take(tenth * SAMPLE_NS, total, span)
        spans.append(span)
    return port, spans


def kinds(*samples: tuple[int, int]) -> list[str]:
    return [span.kind for span in fed(*samples)[1] if span is not None]


def test_keep_alives_are_not_traffic() -> None:
    assert kinds((0, 0), (1, THRESHOLD), (2, 2 * THRESHOLD + 1)) == ["idle", "busy"]


def test_a_counter_that_goes_back_says_nothing() -> None:
    assert kinds((0, 10**12), (1, 0), (2, 10**9)) == ["unknown", "busy"]


def test_a_long_time_without_reading_is_idle_only_if_next_to_nothing_moved() -> None:
    assert kinds((0, 0), (100, 10**9)) == ["unknown"]
    assert kinds((0, 0), (100, THRESHOLD)) == ["idle"]


def test_a_port_read_slowly_all_the_time_is_read_normally() -> None:
    samples = [(5 * number, 10**9 * number) for number in range(100)]

    assert set(kinds(*samples)[40:]) == {"busy"}


def test_samples_out_of_order_are_left_out() -> None:
    port, spans = fed((5, 0), (3, 10**9), (5, 10**9), (6, 0))

    assert [span is None for span in spans] == [True, True, True, False]
    assert port.last_ns == 6 * SAMPLE_NS


def test_without_a_line_rate_the_peak_is_taken() -> None:
    port = PortTraffic(None)
    for tenth, total in enumerate([0, 10**9, 2 * 10**9, 2 * 10**9 + 500_000]):
        span = port.span_to(tenth * SAMPLE_NS, total)
        port.take(tenth * SAMPLE_NS, total, span)

    assert span is not None
    assert span.kind == "idle"


def test_a_port_of_unknown_rate_that_only_keeps_alive_carries_nothing() -> None:
    port = PortTraffic(None)
    for tenth in range(20):
        span = port.span_to(tenth * SAMPLE_NS, tenth * 20_000)
        port.take(tenth * SAMPLE_NS, tenth * 20_000, span)
        assert span is None or span.kind == "idle"

    assert port.busy_until_ns is None


@given(st.lists(st.integers(3 * SECOND_NS // 10, 10 * SECOND_NS), min_size=1, max_size=300))
def test_gaps_are_kept_in_order_and_bounded_in_time(gaps: list[int]) -> None:
    rhythm, now_ns = Rhythm(), 0
    for length_ns in gaps:
        now_ns += 60 * SECOND_NS
        rhythm.take_gap(now_ns, length_ns)

    kept = gaps[-61:]
    assert rhythm.gaps_ns == kept
    assert rhythm.sorted_ns == sorted(kept)
    assert rhythm.stall_after_ns >= SECOND_NS


def test_pauses_inside_a_burst_are_not_gaps() -> None:
    rhythm = Rhythm()
    rhythm.take_gap(SECOND_NS, SECOND_NS // 10)

    assert rhythm.gaps_ns == []


def test_stalls_are_learned_only_if_they_come_all_the_time() -> None:
    rhythm = Rhythm()
    for second in range(60):
        rhythm.take_gap(second * SECOND_NS, SECOND_NS)
    before = rhythm.stall_after_ns
    for number in range(5):
        rhythm.take_stall((60 + number) * SECOND_NS, 9 * SECOND_NS)

    assert rhythm.stall_after_ns == before
    rhythm.take_stall(70 * SECOND_NS, 9 * SECOND_NS)
    assert rhythm.stall_after_ns > 9 * SECOND_NS


@pytest.mark.parametrize("period", [1.0, 2.5, 4.35, 10.0, 30.0])
def test_the_period_is_found(period: float) -> None:
    busy = Busy()
    for begin, end in bursts(180.0, period=period, idle=0.4 * period):
        busy.take(round(begin * SECOND_NS), round(end * SECOND_NS))

    found = busy.period_ns()

    assert found is not None
    assert found / SECOND_NS == pytest.approx(period, rel=0.06, abs=0.1)


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(1, 10**10)), max_size=30))
def test_any_times_are_taken(spans: list[tuple[int, int]]) -> None:
    busy = Busy()
    for begin_ns, length_ns in spans:
        busy.take(begin_ns, begin_ns + length_ns)

    assert busy.period_ns() is None or busy.period_ns() is not None
    assert len(busy.bits) == 150
