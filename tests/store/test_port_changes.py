"""What changed about ports is found by the time at which it did, among whatever else is kept."""

import sqlite3
from contextlib import closing
from pathlib import Path

from flapd.model.event import PortChange
from flapd.model.times import SECOND_NS
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader
from flapd.store.port_changes import port_changes_since
from tests.store.jobs import fault, incident, job, stall
from tests.store.outages import WALL_NS, outage


def change(name: str, at: int, revision: int = 1) -> PortChange:
    return PortChange(
        id=name,
        revision=revision,
        node="node1",
        key="0x1/1",
        port="mlx5_0/1",
        guid="0x1",
        change="gone",
        note="",
        recorded_ns=at * SECOND_NS,
        wall_offset_ns=WALL_NS,
    )


def test_those_since_a_moment_are_told_in_the_order_in_which_they_were_heard(
    tmp_path: Path,
) -> None:
    early, late, later = change("port-b", 10), change("port-b", 30, 2), change("port-a", 20)
    path = tmp_path / "history.sqlite"
    with closing(History(path)) as history:
        history.commit([outage(), early, late, job(), fault(), stall(), later, incident()], {})

        with closing(HistoryReader(path)) as reader:
            assert reader.port_changes(WALL_NS + 20 * SECOND_NS) == [late, later]
            assert reader.port_changes(WALL_NS + 31 * SECOND_NS) == []
            assert reader.port_changes(0) == [early, late, later]


def test_a_long_journal_is_not_read_for_it(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    asked: list[str] = []
    with closing(History(path)), closing(sqlite3.connect(path)) as connection:
        connection.set_trace_callback(asked.append)
        port_changes_since(connection, 5)
        connection.set_trace_callback(None)
        steps = connection.execute(f"EXPLAIN QUERY PLAN {asked[-1]}").fetchall()

    assert any("USING INDEX port_changes (<expr>>?)" in step[3] for step in steps), steps
