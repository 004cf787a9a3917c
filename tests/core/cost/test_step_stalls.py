"""For how long traffic stood still, where many nodes tell of the same stall."""

from hypothesis import given
from hypothesis import strategies as st

from flapd.core.cost.step_stalls import stalled_seconds
from flapd.core.spans import Span
from flapd.model.stall import STALL_CLASSES, StallClass
from flapd.model.times import SECOND_NS


def span(begin: float, end: float) -> Span:
    return round(begin * SECOND_NS), round(end * SECOND_NS)


def test_one_stall_that_all_nodes_tell_of_counts_once_and_for_the_link() -> None:
    found = stalled_seconds(
        {"remote": [span(10.1, 14.5)] * 127, "local_link": [span(10, 14.4)], "checkpoint": []}
    )

    assert found == {"local_link": 4.4, "remote": 0.1}


def test_stalls_of_different_moments_add_up() -> None:
    assert stalled_seconds({"remote": [span(0, 1), span(5, 7)]}) == {"remote": 3.0}


_SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), max_size=4)


@given(st.dictionaries(st.sampled_from(STALL_CLASSES), _SPANS))
def test_all_classes_together_are_the_moments_in_which_any_stood_still(
    told: dict[StallClass, list[tuple[int, int]]],
) -> None:
    spans = {
        kind: [span(begin, begin + lasted) for begin, lasted in found]
        for kind, found in told.items()
    }
    moments = {
        second
        for found in told.values()
        for begin, lasted in found
        for second in range(begin, begin + lasted)
    }

    found = stalled_seconds(spans)

    assert all(found.values())
    assert sum(found.values()) == len(moments)
    assert found.get("local_link", 0.0) == len(
        {
            second
            for begin, lasted in told.get("local_link", [])
            for second in range(begin, begin + lasted)
        }
    )
