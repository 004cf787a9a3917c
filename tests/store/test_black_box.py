"""Black boxes: the samples around each outage, kept once, whatever comes in between."""

import sqlite3
from contextlib import closing
from pathlib import Path

from flapd.core.fabric.catalogue import LINK_DOWNED, STATE
from flapd.store.black_box import MOST_ROWS, BlackBox
from flapd.store.flap_query import FlapQuery
from flapd.store.history import History, open_history
from flapd.store.history_reader import HistoryReader
from tests.store.kept import Kept, kept
from tests.store.outages import outage, unix
from tests.store.rings import TRAFFIC, every, fill

DAY = 86_400


def seconds(box: BlackBox | None) -> list[int]:
    """The whole seconds of the boot in which it has rows."""
    assert box is not None
    return sorted({((row[0] or 0) - unix(0)) // 10**9 for row in box.rows})


def segments(whole: Kept) -> int:
    return int(whole.rows("SELECT count(*) FROM segments")[0][0])


def test_samples_of_all_tiers_around_a_closed_flap_are_kept(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 10, 200))
        fill(whole.ring, every(0.5, 10.05, 200), "slow")
        whole.history.commit([outage("a", down=105, up=107)], {})
        whole.look(200)

        box = whole.reader.black_box("a")

    assert box is not None
    assert box.columns == ["time", LINK_DOWNED, TRAFFIC, STATE, "counters/symbol_error"]
    assert seconds(box) == list(range(70, 140))
    assert len(box.rows) == 700 + 140
    assert box.rows[0] == [unix(70), 70, 70, 70, None]
    assert box.rows[1] == [unix(70.05), None, None, 70, 70]
    assert (box.pending, box.incomplete) == (False, False)


def test_rows_stay_after_the_ring_has_overwritten_them(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 50, 150))
        whole.history.commit([outage("a", down=100, up=101)], {})
        whole.look(150)
        fill(whole.ring, every(0.1, 150, 1200))

        assert seconds(whole.reader.black_box("a")) == list(range(70, 140))


def test_a_slot_is_taken_once_it_is_over(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 50, 111))
        whole.history.commit([outage("a", down=105, up=107)], {})
        whole.look(111)
        box = whole.reader.black_box("a")
        assert box is not None
        assert (seconds(box), box.pending) == (list(range(70, 100)), True)

        fill(whole.ring, every(0.1, 111, 150))
        whole.look(150)
        box = whole.reader.black_box("a")
        assert box is not None
        assert (seconds(box), box.pending) == (list(range(70, 140)), False)


def test_two_flaps_that_share_samples_store_them_once(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 10, 300))
        whole.history.commit([outage("a", down=105, up=107)], {})
        whole.look(160)
        whole.history.commit([outage("b", down=117, up=118)], {})
        whole.look(300)

        assert segments(whole) == 8
        assert seconds(whole.reader.black_box("a")) == list(range(70, 140))
        assert seconds(whole.reader.black_box("b")) == list(range(80, 150))


def test_of_an_outage_of_days_both_ends_are_kept(tmp_path: Path) -> None:
    """Its beginning is taken while it goes on: the ring does not last so long."""
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 50, 200))
        whole.history.commit([outage("a", 1, down=105, up=None)], {})
        whole.look(200)
        fill(whole.ring, every(0.1, DAY, DAY + 200))
        whole.history.commit([outage("a", 2, down=105, up=DAY + 105, kind="drop")], {})
        whole.look(DAY + 200)

        box = whole.reader.black_box("a")

    tail = list(range(DAY + 70, DAY + 140))
    assert seconds(box) == [*range(70, 140), *tail]
    assert box is not None
    assert not box.incomplete


def test_what_is_still_to_be_taken_outlives_a_restart(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 50, 200))
        whole.history.commit([outage("a", down=105, up=107)], {})

    with kept(tmp_path) as whole:
        whole.look(200)

        assert seconds(whole.reader.black_box("a")) == list(range(70, 140))


def test_after_a_reboot_a_ring_that_lasted_is_still_taken(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 50, 200))
        whole.history.commit([outage("a", down=105, up=107)], {})

    with kept(tmp_path, boot="boot-2", present=dict) as whole:
        whole.look(20)

        assert seconds(whole.reader.black_box("a")) == list(range(70, 140))


def test_what_the_ring_has_lost_is_not_looked_for_again(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 120, 200))
        whole.history.commit([outage("a", down=105, up=107), outage("b", down=20, up=21)], {})
        whole.look(200)

        part = whole.reader.black_box("a")
        assert part is not None
        assert (seconds(part), part.pending, part.incomplete) == (
            list(range(120, 140)),
            False,
            True,
        )
        assert whole.reader.black_box("b") is None
        assert whole.rows("SELECT count(*) FROM wanted") == [(0,)]


def test_without_any_ring_there_is_no_black_box_and_no_error(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        whole.history.commit([outage("a", down=105, up=107)], {})
        whole.look(200)

        assert whole.reader.black_box("a") is None


def test_rings_of_another_boot_are_not_taken_for_this_one(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 50, 200), boot="boot-0")
        whole.history.commit([outage("a", down=105, up=107)], {})
        whole.look(200)

        assert whole.reader.black_box("a") is None


def test_a_page_tells_which_of_its_flaps_have_one(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 50, 200))
        whole.history.commit([outage("a", down=105, up=107), outage("b", down=900, up=901)], {})
        assert whole.reader.flaps(FlapQuery()).with_black_box == frozenset()
        whole.look(200)

        assert whole.reader.flaps(FlapQuery()).with_black_box == {"a"}


def test_a_page_of_the_largest_size_tells_it_of_all(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 50, 200))
        flaps = [outage(str(number), down=105, up=107) for number in range(1000)]
        whole.history.commit(flaps, {})
        whole.look(200)

        page = whole.reader.flaps(FlapQuery(limit=1000))
        assert page.with_black_box == {flap.id for flap in page.items}
        assert segments(whole) == 7


def test_a_large_one_is_told_in_fewer_rows_with_the_extremes_kept(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        whole.history.black_box_ns = 120 * 10**9
        fill(whole.ring, every(0.01, 300, 390), value=lambda ns: int(ns == 330 * 10**9))
        whole.history.commit([outage("a", down=340, up=341)], {})
        whole.look(390)
        fill(whole.ring, every(0.01, 390, 480), value=lambda _ns: 0)
        whole.look(482)
        fill(whole.ring, every(0.01, 480, 500), value=lambda _ns: 0)
        whole.look(502)

        box = whole.reader.black_box("a")

    assert box is not None
    assert len(box.rows) <= MOST_ROWS
    assert max(row[2] or 0 for row in box.rows) == 1


def damage(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_damage_in_one_segment_costs_that_segment_alone(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 50, 200))
        whole.history.commit([outage("a", down=105, up=107)], {})
        whole.look(200)
        damage(whole.path, "UPDATE segments SET packed = x'00' WHERE slot = 9")

        box = whole.reader.black_box("a")

    assert box is not None
    assert seconds(box) == [*range(70, 90), *range(100, 140)]
    assert box.incomplete


def test_damage_of_all_black_boxes_leaves_events_readable_and_writable(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 50, 200))
        whole.history.commit([outage("a", down=105, up=107)], {"ledger": b"1"})
        whole.look(200)
        path = whole.path
        ((root,),) = whole.rows("SELECT rootpage FROM sqlite_schema WHERE name = 'segments'")
    content = bytearray(path.read_bytes())
    content[(root - 1) * 4096 : root * 4096] = b"\xa5" * 4096
    path.write_bytes(content)

    with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
        assert reader.black_box("a") is None
        assert reader.flap("a") == outage("a", down=105, up=107)
        history.commit([outage("b")], {"ledger": b"2"})
        assert history.checkpoint() == {"ledger": b"2"}

    anew, aside = open_history(path)  # small enough that each start looks at every page
    anew.close()
    assert aside is not None


def test_a_hub_keeps_no_samples(tmp_path: Path) -> None:
    with closing(History(tmp_path / "history.sqlite")) as history:
        history.commit([outage("a")], {})
    with closing(sqlite3.connect(tmp_path / "history.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM wanted").fetchone() == (0,)
