"""What is looked at does not grow with what runs besides."""

from hypothesis import given
from hypothesis import strategies as st

from flapd.sources.jobs.process_table import OTHERS_A_LOOK, YOUNG_LOOKS, ProcessTable


def test_new_processes_are_looked_at_at_once_and_while_they_are_young() -> None:
    table = ProcessTable()
    for _ in range(YOUNG_LOOKS):
        assert set(table.due({7: 1, 8: 2})) == {7, 8}
    assert 9 in table.due({7: 1, 8: 2, 9: 3})


def test_of_ten_thousand_others_a_few_have_their_turn_and_in_the_end_all() -> None:
    table = ProcessTable()
    present = {pid: pid for pid in range(1, 10_001)}
    for _ in range(YOUNG_LOOKS):
        table.due(present)

    looked: set[int] = set()
    for _ in range(10_000 // OTHERS_A_LOOK):
        due = table.due(present)
        assert len(due) <= OTHERS_A_LOOK
        looked.update(due)

    assert looked == set(present)


def test_a_pid_that_another_process_has_now_is_looked_at_again() -> None:
    table = ProcessTable()
    for _ in range(YOUNG_LOOKS + 1):
        table.due(dict.fromkeys(range(1000), 1))

    assert 999 in table.due({pid: 1 if pid < 999 else 2 for pid in range(1000)})


@given(st.lists(st.dictionaries(st.integers(1, 50), st.integers(1, 3)), max_size=30))
def test_only_what_is_there_is_looked_at_and_each_once(looks: list[dict[int, int]]) -> None:
    table = ProcessTable()
    for present in looks:
        due = table.due(present)
        assert set(due) <= set(present)
