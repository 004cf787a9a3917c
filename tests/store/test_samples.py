"""Samples: one table of what the rings of a port hold."""

from pathlib import Path

from flapd.core.fabric.catalogue import LINK_DOWNED, STATE
from flapd.model.observation import READ_STATE, READ_WITNESS
from flapd.model.times import SECOND_NS
from flapd.store.samples import MOST_ROWS, samples
from tests.store.rings import BOOT, KEY, TRAFFIC, every, fill, ring_of


def test_rows_of_all_tiers_stand_in_order_with_none_where_nothing_was_read(tmp_path: Path) -> None:
    fill(tmp_path, [1, 3])
    fill(tmp_path, [2], "slow")

    table = samples(tmp_path, KEY, 0, [TRAFFIC, "counters/symbol_error", "absent"], 0)

    assert table.columns == ["time", TRAFFIC, "counters/symbol_error", "absent"]
    assert table.rows == [
        [1 * SECOND_NS, 1, None, None],
        [2 * SECOND_NS, None, 2, None],
        [3 * SECOND_NS, 3, None, None],
    ]


def test_without_names_each_column_of_each_ring_is_told_once(tmp_path: Path) -> None:
    fill(tmp_path, [1])
    fill(tmp_path, [1], "slow")

    table = samples(tmp_path, KEY, 0, None, 0)

    assert table.columns == ["time", LINK_DOWNED, TRAFFIC, STATE, "counters/symbol_error"]


def test_what_an_earlier_sweep_read_is_not_told_as_read_now(tmp_path: Path) -> None:
    ring = ring_of(tmp_path)
    ring.append(1, 2, READ_WITNESS, {LINK_DOWNED: 3, STATE: 4})
    ring.append(3, 4, READ_WITNESS | READ_STATE, {LINK_DOWNED: 3, STATE: 4})

    table = samples(tmp_path, KEY, 0, [STATE, LINK_DOWNED], 0)

    assert table.rows == [[1, None, 3], [3, 4, 3]]


def test_counters_of_huge_value_stay_exact(tmp_path: Path) -> None:
    fill(tmp_path, [1], value=lambda _ns: 2**64 - 1)

    assert samples(tmp_path, KEY, 0, [TRAFFIC], 0).rows == [[SECOND_NS, 2**64 - 1]]


def test_only_what_began_after_the_time_is_told(tmp_path: Path) -> None:
    fill(tmp_path, [1, 2, 3])

    table = samples(tmp_path, KEY, 2 * SECOND_NS, [TRAFFIC], 0)

    assert [row[0] for row in table.rows] == [3 * SECOND_NS]


def test_a_step_has_its_lowest_and_its_highest(tmp_path: Path) -> None:
    fill(tmp_path, every(0.5, 10, 20))

    assert samples(tmp_path, KEY, 0, [TRAFFIC], 5 * SECOND_NS).rows == [
        [10 * SECOND_NS, 10],
        [round(14.5 * SECOND_NS), 14],
        [15 * SECOND_NS, 15],
        [round(19.5 * SECOND_NS), 19],
    ]


def test_there_are_never_too_many_rows(tmp_path: Path) -> None:
    fill(tmp_path, every(0.1, 0.1, 900))
    fill(tmp_path, every(0.5, 0.1, 900), "slow")

    rows = samples(tmp_path, KEY, 0, None, 0).rows

    assert MOST_ROWS / 2 <= len(rows) <= MOST_ROWS
    assert (rows[0][2], rows[-1][2]) == (0, 899)


def test_another_boot_and_a_port_without_rings_tell_nothing(tmp_path: Path) -> None:
    fill(tmp_path, [1], boot="boot-0")

    assert samples(tmp_path, KEY, 0, [TRAFFIC], 0, BOOT).rows == []
    assert samples(tmp_path, "0x2/1", 0, None, 0).columns == ["time"]
