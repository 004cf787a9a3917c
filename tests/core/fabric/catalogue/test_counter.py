import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.fabric.catalogue import Counter, rise_between

XMIT_DATA = "counters/port_xmit_data"


@pytest.mark.parametrize(
    ("name", "last", "value", "rise"),
    [
        ("counters/link_downed", 3, 5, 2),
        ("counters/link_downed", 5, 3, None),
        ("counters/link_downed", 254, 255, 1),
        ("counters/link_downed", 255, 255, 0),
        ("net/carrier_down_count", 2**32 - 1, 0, 1),
        ("net/carrier_down_count", 7, 1, None),
        ("hw_counters/SwLinkDown,32", 2**32 - 2, 3, 5),
        ("ethtool/link_down_events_phy", 2**32 - 1, 1, 2),
    ],
)
def test_a_fall_is_a_wrap_or_a_reset(name: str, last: int, value: int, rise: int | None) -> None:
    assert rise_between(name, last, value) == rise


def test_a_fall_of_what_was_sent_may_be_a_wrap_or_a_reset_and_tells_nothing() -> None:
    assert rise_between(XMIT_DATA, 2**32 - 5, 7) is None
    assert rise_between(XMIT_DATA, 2**40, 7) is None


def test_a_classic_counter_at_its_stop_does_not_say_that_nothing_was_sent() -> None:
    stop = 2**32 - 1

    assert rise_between(XMIT_DATA, stop, stop) is None
    assert rise_between(XMIT_DATA, stop - 1, stop) == 1
    assert rise_between(XMIT_DATA, stop, stop + 9) == 9
    assert rise_between(XMIT_DATA, 12, 12) == 0


@given(st.integers(1, 64), st.data())
def test_a_counter_that_wraps_gives_back_every_rise_below_half_its_range(
    bits: int, data: st.DataObject
) -> None:
    counter = Counter("x", "x", "fast", bits)
    last = data.draw(st.integers(0, 2**bits - 1))
    rise = data.draw(st.integers(0, 2 ** (bits - 1) - 1))

    assert counter.rise(last, (last + rise) % 2**bits) == rise


@given(st.integers(1, 64), st.data())
def test_a_counter_that_stops_never_fell_by_counting(bits: int, data: st.DataObject) -> None:
    counter = Counter("x", "x", "fast", bits, "stops")
    last, value = sorted(
        data.draw(st.tuples(st.integers(0, 2**bits - 1), st.integers(0, 2**bits - 1)))
    )

    assert counter.rise(last, value) == value - last
    assert counter.rise(value, last) == (0 if value == last else None)
