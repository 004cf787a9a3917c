"""The hub's pump: what is taken is on disk with its place, whatever disk and process do."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.fleet import FleetView
from flapd.fleet_pump import STREAM, FleetPump
from flapd.model.consuming import Position
from flapd.model.event import Event, PortChange
from flapd.model.fleet import FLEET_VERSION, Heartbeat, NodeEvent
from flapd.model.incident import Incident
from flapd.store.flap_query import FlapQuery
from flapd.store.history import History, HistoryError
from flapd.store.history_reader import HistoryReader
from flapd.store.job_queries import FaultQuery, IncidentQuery, JobQuery, StallQuery
from tests.serve.hub.fake_hub import beat
from tests.store.jobs import fault, incident, job, stall
from tests.store.outages import outage
from tests.system.harness import until

PATIENCE_SECONDS = 20.0


class FullDisk(History):
    """Takes nothing while `is_full`."""

    is_full = False

    def write(self, step: Callable[[sqlite3.Connection], None]) -> None:
        if self.is_full:
            raise HistoryError("no space is left")
        super().write(step)


class Pumped:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "hub.sqlite"
        self.history = FullDisk(self.path)
        self.reader = HistoryReader(self.path)
        self.view = FleetView("default", JobSettings(), CostSettings())
        self.commits = 0
        self.heard_before: list[Heartbeat] = []
        self.pump = FleetPump(
            self.view,
            self.history,
            remember=self._remember,
            is_current=lambda: True,
            committed=self._committed,
        )
        self.pump.start()

    def _remember(self, view: FleetView) -> None:
        for told, received_ns in self.reader.beats(0):
            self.heard_before.append(told)
            view.beat(told, received_ns)

    def _committed(self) -> None:
        self.commits += 1

    def take(self, seq: int, *events: Event) -> Callable[[], None]:
        """What waits until they are on disk."""
        told = [NodeEvent(FLEET_VERSION, "default", one.node, 1, one) for one in events]
        taken = self.pump.take(told, Position("2026", seq, time.time_ns()), True)
        return lambda: taken.result(PATIENCE_SECONDS)

    def position(self) -> int:
        with closing(History(self.path)) as again:
            return msgspec.json.decode(again.checkpoint()[STREAM], type=Position).seq

    def stop(self) -> None:
        assert self.pump.stop(PATIENCE_SECONDS)
        self.reader.close()
        self.history.close()  # one that failed leaves it open: its process ends


@pytest.fixture
def pumped(tmp_path: Path) -> Iterator[Pumped]:
    found = Pumped(tmp_path)
    yield found
    with suppress(sqlite3.ProgrammingError):
        found.stop()


def test_what_is_taken_is_on_disk_with_the_place_behind_it(pumped: Pumped) -> None:
    pumped.take(7, outage("a"), outage("b"))()
    pumped.take(9, outage("a", 2, up=14), stall())()

    assert pumped.commits == 2
    assert pumped.position() == 9
    assert pumped.reader.flaps(FlapQuery()).items == [outage("b"), outage("a", 2, up=14)]


def test_what_is_taken_is_on_disk_before_anybody_looks_what_it_means(pumped: Pumped) -> None:
    looks, may_end = threading.Event(), threading.Event()
    look = pumped.view.look

    def slowly(now_ns: int) -> list[Incident]:
        looks.set()
        may_end.wait(PATIENCE_SECONDS)
        return look(now_ns)

    pumped.view.look = slowly  # type: ignore[method-assign]
    wait = pumped.take(7, outage("a"))
    assert looks.wait(PATIENCE_SECONDS)

    try:
        wait()
        assert pumped.position() == 7
    finally:
        may_end.set()


def test_a_full_disk_holds_up_what_comes_and_loses_nothing(pumped: Pumped) -> None:
    pumped.history.is_full = True
    wait = pumped.take(1, outage("a"))
    until(lambda: pumped.pump.health.write_errors > 0, "a write that failed")
    assert pumped.pump.health.events_not_durable == 1
    assert pumped.reader.flaps(FlapQuery()).items == []
    behind = pumped.take(2, outage("b"))

    pumped.history.is_full = False
    wait()
    behind()

    assert len(pumped.reader.events_after(0, 10)) == 2
    assert pumped.pump.health.events_not_durable == 0
    assert not pumped.pump.health.failed


def test_it_ends_while_the_disk_is_full(pumped: Pumped) -> None:
    """What was not taken is in the stream."""
    pumped.take(1, outage("a"))()
    pumped.history.is_full = True
    pumped.take(2, outage("b"))
    until(lambda: pumped.pump.health.write_errors > 0, "a write that failed")

    assert pumped.pump.stop(PATIENCE_SECONDS)

    assert pumped.position() == 1


def test_what_a_node_claims_for_itself_is_no_incident_of_the_fleet(pumped: Pumped) -> None:
    pumped.take(1, incident("claim"), incident("told", nodes=("node17", "node18")))()

    told = pumped.reader.incidents(IncidentQuery()).items
    assert "claim" not in {one.id for one in told}
    assert {kind for _seq, kind in _journal(pumped)} <= {"incident"}


def _journal(pumped: Pumped) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(pumped.path)) as connection:
        return connection.execute("SELECT seq, kind FROM journal").fetchall()


def test_heartbeats_are_heard_again_after_a_restart(pumped: Pumped, tmp_path: Path) -> None:
    pumped.pump.beat(beat("node1"))
    pumped.pump.beat(beat("node1", last_seq=8))
    pumped.pump.beat(beat("node2"))
    until(lambda: len(pumped.reader.beats(0)) == 2, "the heartbeats on disk")
    pumped.stop()

    again = Pumped(tmp_path)
    until(lambda: len(again.pump.snapshot.nodes) == 2, "the nodes")
    again.stop()

    assert [(told.node, told.last_seq) for told in again.heard_before] == [
        ("node1", 8),
        ("node2", 7),
    ]


def test_a_pump_that_cannot_go_on_says_so(pumped: Pumped) -> None:
    def fail(told: NodeEvent) -> None:
        raise RuntimeError(told.event.id)

    pumped.view.hear = fail  # type: ignore[method-assign]
    pumped.take(1, outage())

    until(lambda: pumped.pump.health.failed, "the end")


def test_no_node_speaks_of_what_another_told_first(pumped: Pumped) -> None:
    pumped.take(1, outage("a", node="node1"), stall(node="node1"), job(node="node1"))()
    pumped.take(2, change(node="node1"))()

    pumped.take(
        3,
        outage("a", 9, node="node2", up=99),
        stall(revision=9, node="node2"),
        job(revision=9, node="node2", kind="inference"),
        change(9, node="node2"),
        outage("b", 1, node="node2"),
        outage("b", 2, node="node3"),
    )()

    assert pumped.pump.health.refused == 5
    assert pumped.position() == 3
    flaps = {one.id: one for one in pumped.reader.flaps(FlapQuery()).items}
    assert {name: one.node for name, one in flaps.items()} == {"a": "node1", "b": "node2"}
    assert pumped.reader.stalls(StallQuery()).items == [stall(node="node1")]
    assert pumped.reader.jobs(JobQuery()).items == [job(node="node1")]
    assert {event.node for _seq, event in pumped.reader.events_after(0, 100)} == {"node1", "node2"}


def test_a_line_that_many_nodes_read_is_told_by_all_of_them(pumped: Pumped) -> None:
    pumped.take(1, fault(node="node1"))()
    pumped.take(2, fault(revision=1, node="node2"))()

    assert pumped.pump.health.refused == 0
    (kept,) = pumped.reader.faults(FaultQuery()).items
    assert (kept.revision, kept.node) == (1, "node2")


def change(revision: int = 1, **changes: Any) -> PortChange:
    fields: dict[str, Any] = {
        "id": "port-1",
        "revision": revision,
        "node": "node1",
        "key": "0x1/1",
        "port": "mlx5_0/1",
        "guid": "0x1",
        "change": "found",
        "note": "",
        "recorded_ns": 1,
        "wall_offset_ns": 0,
    }
    return PortChange(**{**fields, **changes})
