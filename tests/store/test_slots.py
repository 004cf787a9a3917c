"""Slots: all around each edge, whole bursts, and never days."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.model.times import SECOND_NS, Edge
from flapd.store.slots import SLOT_NS, slots_around
from tests.store.outages import outage

AROUND_NS = 30 * SECOND_NS


def test_a_short_flap_is_one_span_on_the_grid() -> None:
    assert slots_around(outage(down=105, up=107), AROUND_NS) == [range(7, 14)]


def test_two_flaps_ten_seconds_apart_share_slots() -> None:
    (first,) = slots_around(outage(down=105, up=107), AROUND_NS)
    (second,) = slots_around(outage(down=117, up=118), AROUND_NS)

    assert set(first) & set(second) == set(range(8, 14))


def test_a_burst_is_kept_whole() -> None:
    assert slots_around(outage(down=100, up=215), AROUND_NS) == [range(7, 25)]


def test_of_days_only_the_edges_are_kept() -> None:
    day = 86_400
    assert slots_around(outage(down=100, up=100 + day), AROUND_NS) == [
        range(7, 14),
        range(8647, 8654),
    ]


def test_what_is_open_has_the_span_of_its_down() -> None:
    assert slots_around(outage(down=105, up=None), AROUND_NS) == [range(7, 14)]


def test_nothing_lies_before_the_boot() -> None:
    assert slots_around(outage(down=3, up=4), AROUND_NS) == [range(4)]


@given(
    st.lists(st.integers(0, 10**15), min_size=4, max_size=4).map(sorted),
    st.integers(0, 300 * SECOND_NS),
)
def test_spans_hold_all_around_each_stamp_apart_in_order_and_bounded(
    stamps: list[int], around_ns: int
) -> None:
    first_ns, second_ns, third_ns, fourth_ns = stamps
    flap = replace(outage(), down=Edge(first_ns, second_ns, 0), up=Edge(third_ns, fourth_ns, 0))

    spans = slots_around(flap, around_ns)

    for stamp in stamps:
        first, last = max(0, stamp - around_ns) // SLOT_NS, (stamp + around_ns) // SLOT_NS
        assert any(first in span and last in span for span in spans)
    assert all(left[-1] < right[0] for left, right in itertools.pairwise(spans))
    longest_ns = 3 * max(120 * SECOND_NS, 2 * around_ns + SLOT_NS) + 2 * around_ns
    assert sum(map(len, spans)) <= longest_ns // SLOT_NS + 2 * len(spans)
