"""Segments: what was packed is unpacked, and damage is never taken for samples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.store.ring_layout import RingRow
from flapd.store.segment import SegmentError, pack_segment, unpack_segment

U64 = st.integers(0, 2**64 - 1)


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[str, ...], list[RingRow]]:
    columns = tuple(f"c{index}" for index in range(draw(st.sampled_from([0, 1, 3, 64, 65, 130]))))
    some = st.dictionaries(st.sampled_from(columns), U64, max_size=6) if columns else st.just({})
    before = st.integers(0, 2**63)
    rows = st.tuples(before, st.integers(0, 2**40), st.integers(0, 255), some).map(
        lambda row: RingRow(row[0], row[0] + row[1], row[2], row[3])
    )
    return columns, draw(st.lists(rows, max_size=12))


@given(tables())
def test_rows_are_unpacked_as_they_were(table: tuple[tuple[str, ...], list[RingRow]]) -> None:
    columns, rows = table
    assert unpack_segment(columns, pack_segment(columns, rows)) == rows


COLUMNS = tuple(f"c{index}" for index in range(16))
ROWS = [
    RingRow(1_000 + 100 * number, 1_010 + 100 * number, 3, dict.fromkeys(COLUMNS, number))
    for number in range(100)
]


@given(st.data())
def test_damage_is_found(data: st.DataObject) -> None:
    packed = bytearray(pack_segment(COLUMNS, ROWS))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))

    try:
        rows = unpack_segment(COLUMNS, bytes(packed))
    except SegmentError:
        return
    assert rows == ROWS  # a bit of zlib's header that changes nothing


def test_bytes_that_do_not_fit_the_columns_are_refused() -> None:
    with pytest.raises(SegmentError, match="columns"):
        unpack_segment(COLUMNS[:-1], pack_segment(COLUMNS, ROWS[:1]))


def test_a_minute_of_sixteen_steady_columns_is_small() -> None:
    """Six segments of ten seconds each at 100 ms, nothing of them random."""
    assert 6 * len(pack_segment(COLUMNS, ROWS)) < 2000
