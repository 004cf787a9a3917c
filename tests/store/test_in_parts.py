"""In parts: all that can be taken is taken, in its order, and what cannot is known."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.store.database import HistoryCorruptError
from flapd.store.in_parts import taken_in_parts


@given(st.lists(st.booleans(), max_size=60))
def test_all_is_taken_in_order_but_what_fails_alone(is_sound: list[bool]) -> None:
    taken: list[int] = []
    left_out: list[int] = []
    calls: list[Sequence[int]] = []

    def take(numbers: Sequence[int]) -> bool:
        calls.append(numbers)
        if not all(is_sound[number] for number in numbers):
            raise ValueError(numbers)
        taken.extend(numbers)
        return True

    assert taken_in_parts(take, range(len(is_sound)), left_out.append)

    assert taken == [number for number, sound in enumerate(is_sound) if sound]
    assert left_out == [number for number, sound in enumerate(is_sound) if not sound]
    depth = math.ceil(math.log2(max(2, len(is_sound)))) + 1
    assert len(calls) <= 2 + 2 * depth * len(left_out)


def test_who_ends_in_the_middle_is_asked_no_more() -> None:
    calls: list[Sequence[int]] = []

    def take(numbers: Sequence[int]) -> bool:
        calls.append(numbers)
        if len(numbers) > 1:
            raise ValueError(numbers)
        return len(calls) < 3

    left_out: list[int] = []
    assert not taken_in_parts(take, [1, 2, 3, 4], left_out.append)
    assert (calls, left_out) == ([[1, 2], [1], [2]], [])


def test_a_damaged_file_is_no_fault_of_what_is_taken() -> None:
    def take(numbers: Sequence[int]) -> bool:
        raise HistoryCorruptError(f"damaged at {numbers}")

    left_out: list[int] = []
    with pytest.raises(HistoryCorruptError):
        taken_in_parts(take, [1, 2, 3], left_out.append)
    assert left_out == []
