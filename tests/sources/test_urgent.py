from hypothesis import given
from hypothesis import strategies as st

from flapd.model.times import SECOND_NS
from flapd.sources.urgent import MOST_AT_ONCE, NEVER_NS, WITHIN_NS, Urgent


def test_what_something_happened_to_is_read_at_once_and_once() -> None:
    now_ns = 7 * SECOND_NS
    urgent = Urgent(lambda: now_ns)
    assert urgent.due_ns == NEVER_NS

    urgent.add(["a/1"])
    urgent.add(["b/1", "a/1"])

    assert urgent.due_ns <= now_ns
    assert urgent.take() == {"a/1", "b/1"}
    assert urgent.due_ns == NEVER_NS
    assert urgent.take() == frozenset()


def test_nothing_is_due_for_nothing() -> None:
    urgent = Urgent(lambda: 0)

    urgent.add([])

    assert urgent.due_ns == NEVER_NS


@given(st.lists(st.integers(0, SECOND_NS // 2), min_size=1, max_size=60))
def test_a_kernel_that_never_stops_has_a_port_read_only_so_often_and_always_again(
    pauses_ns: list[int],
) -> None:
    now_ns, taken_ns = 100 * SECOND_NS, []
    urgent = Urgent(lambda: now_ns)
    for pause_ns in pauses_ns:
        now_ns += pause_ns
        urgent.add(["a/1"])
        assert urgent.due_ns <= now_ns + WITHIN_NS
        if urgent.due_ns <= now_ns:
            assert urgent.take() == {"a/1"}
            taken_ns.append(now_ns)

    for first, last in zip(taken_ns, taken_ns[MOST_AT_ONCE:], strict=False):
        assert last - first >= WITHIN_NS
