"""Thinning: fewer rows, and nothing of what was lowest or highest lost."""

from hypothesis import given
from hypothesis import strategies as st

from flapd.store.thinning import Row, bounded, thinned

VALUES = st.none() | st.integers(0, 2**64 - 1)


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row[0] or 0)


ROWS = st.lists(st.tuples(st.integers(0, 10**6), VALUES, VALUES).map(list), max_size=60).map(
    in_order
)


def extremes(rows: list[Row], column: int) -> tuple[int, int] | None:
    values = [value for row in rows if (value := row[column]) is not None]
    return (min(values), max(values)) if values else None


@given(ROWS, st.integers(1, 10**6))
def test_each_step_keeps_its_lowest_and_highest_in_at_most_two_rows(
    rows: list[Row], step_ns: int
) -> None:
    thin = list(thinned(rows, step_ns))

    assert in_order(thin) == thin
    steps = {(row[0] or 0) // step_ns for row in rows}
    assert {(row[0] or 0) // step_ns for row in thin} == steps
    for step in steps:
        before, after = (
            [row for row in table if (row[0] or 0) // step_ns == step] for table in (rows, thin)
        )
        assert len(after) <= 2
        assert all(extremes(before, column) == extremes(after, column) for column in (1, 2))


def test_a_step_in_which_nothing_differs_is_one_row() -> None:
    assert list(thinned([[1, 7, None], [2, None, None], [3, 7, None]], 10)) == [[1, 7, None]]


def test_a_dip_is_kept_between_the_times_of_its_step() -> None:
    assert list(thinned([[1, 4], [5, 1], [9, 4]], 10)) == [[1, 1], [9, 4]]


@given(ROWS, st.integers(4, 70))
def test_what_is_bounded_has_no_more_rows_than_that_and_the_same_extremes(
    rows: list[Row], most: int
) -> None:
    fewer = bounded(rows, most)

    assert len(fewer) <= most
    assert fewer == rows or len(rows) > most
    assert all(extremes(rows, column) == extremes(fewer, column) for column in (1, 2))
