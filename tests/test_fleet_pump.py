"""The hub's pump: what is taken is on disk with its place, whatever disk and process do."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
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
    is_closed = False

    def write(self, step: Callable[[sqlite3.Connection], None]) -> None:
        if self.is_full:
            raise HistoryError("no space is left")
        super().write(step)

    def close(self) -> None:
        super().close()
        self.is_closed = True


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

    def hand_over(self, seq: int, *events: Event) -> "Future[None]":
        told = [NodeEvent(FLEET_VERSION, "default", one.node, 1, one) for one in events]
        return self.pump.take(told, Position("2026", seq, time.time_ns()), True)

    def take(self, seq: int, *events: Event) -> Callable[[], None]:
        """What waits until they are on disk."""
        taken = self.hand_over(seq, *events)
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
    def hear_all() -> None:  # with one turn: those of the next are kept half a minute later
        pumped.pump.beat(beat("node1"))
        pumped.pump.beat(beat("node1", last_seq=8))
        pumped.pump.beat(beat("node2"))

    pumped.pump.call(hear_all)
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
    def fail(step: Callable[[sqlite3.Connection], None]) -> None:
        raise RuntimeError(step)

    pumped.history.write = fail  # type: ignore[method-assign]
    pumped.take(1, outage())

    until(lambda: pumped.pump.health.failed, "the end")


async def lose_the_connection_while_it_is_written(pumped: Pumped, seq: int, event: Event) -> None:
    """As the consumer waits, with tasks that all end with the first that ends."""
    pumped.history.is_full = True
    reading = asyncio.ensure_future(asyncio.wrap_future(pumped.hand_over(seq, event)))
    await asyncio.to_thread(until, lambda: pumped.pump.health.write_errors > 0, "a failed write")
    reading.cancel()
    with suppress(asyncio.CancelledError):
        await reading


async def test_a_lost_connection_stops_nothing_that_is_being_written(pumped: Pumped) -> None:
    await lose_the_connection_while_it_is_written(pumped, 1, outage("a"))
    pumped.history.is_full = False

    await asyncio.to_thread(pumped.take(2, outage("b")))

    assert not pumped.pump.health.failed
    assert pumped.position() == 2
    assert {one.id for one in pumped.reader.flaps(FlapQuery()).items} == {"a", "b"}


async def test_stopped_in_the_middle_of_a_batch_it_closes_the_history(pumped: Pumped) -> None:
    await lose_the_connection_while_it_is_written(pumped, 1, outage("a"))
    pumped.history.is_full = False

    assert await asyncio.to_thread(pumped.pump.stop, PATIENCE_SECONDS)

    assert pumped.history.is_closed
    assert not pumped.pump.health.failed


async def test_what_nobody_waits_for_any_more_is_left_to_the_stream(pumped: Pumped) -> None:
    pumped.history.is_full = True
    first = pumped.take(1, outage("a"))
    assert pumped.hand_over(2, outage("b")).cancel()
    assert pumped.pump.call(lambda: None).cancel()
    pumped.history.is_full = False
    first()

    await asyncio.to_thread(pumped.take(3, outage("c")))

    assert {one.id for one in pumped.reader.flaps(FlapQuery()).items} == {"a", "c"}


def test_an_event_that_the_view_cannot_take_is_left_out_and_the_others_are_kept(
    pumped: Pumped,
) -> None:
    hear = pumped.view.hear

    def fail(told: NodeEvent) -> None:
        if told.event.id == "poison":
            raise RuntimeError(told.event.id)
        hear(told)

    pumped.view.hear = fail  # type: ignore[method-assign]
    pumped.take(9, *(outage(name) for name in ("a", "b", "poison", "c", "d")))()

    assert {one.id for one in pumped.reader.flaps(FlapQuery()).items} == {"a", "b", "c", "d"}
    assert pumped.position() == 9
    assert (pumped.pump.health.refused, pumped.pump.health.failed) == (1, False)


@pytest.mark.parametrize("others", [0, 1, 6])
def test_an_event_that_the_store_cannot_take_is_left_out_and_the_position_moves(
    pumped: Pumped, others: int
) -> None:
    """SQLite has no such number."""
    names = {f"flap-{number}" for number in range(others)}

    stolen = stall("poison", node="node1"), fault("poison", node="node1")
    pumped.take(8, stolen[0])()

    pumped.take(9, *map(outage, names), outage("huge", 2**63), stolen[1])()

    assert {one.id for one in pumped.reader.flaps(FlapQuery()).items} == names
    assert pumped.position() == 9
    assert (pumped.pump.health.refused, pumped.pump.health.write_errors) == (2, 0)


def test_what_was_kept_and_cannot_be_heard_again_is_left_out(pumped: Pumped) -> None:
    def fail(*_: object) -> bool:
        raise RuntimeError("a fault of ours")

    pumped.view.hear = fail  # type: ignore[method-assign, assignment]
    pumped.view.beat = fail  # type: ignore[method-assign, assignment]
    pumped.pump.hear(NodeEvent(FLEET_VERSION, "default", "node17", 1, outage()))

    assert not pumped.pump.hear_beat(beat("node1"), 1)
    assert pumped.pump.health.refused == 2


def test_a_look_that_fails_is_shown_while_it_does_and_holds_nothing_up(pumped: Pumped) -> None:
    look = pumped.view.look

    def fail(now_ns: int) -> list[Incident]:
        raise ZeroDivisionError(now_ns)

    pumped.view.look = fail  # type: ignore[method-assign]
    pumped.take(1, outage("a"))()
    until(lambda: pumped.pump.health.failing == ("incidents",), "that it is shown")
    pumped.take(2, outage("b"))()
    assert pumped.position() == 2

    pumped.view.look = look  # type: ignore[method-assign]
    until(lambda: not pumped.pump.health.failing, "that it works again")
    assert not pumped.pump.health.failed


@pytest.mark.parametrize("revision", [0, 1, 2])
def test_no_event_takes_the_place_of_one_of_another_kind(pumped: Pumped, revision: int) -> None:
    """Two things of one id would share the journal's rows."""
    pumped.take(1, change(node="node1"), outage("a", node="node1"))()
    before = _journal(pumped)

    pumped.take(
        2,
        fault("port-1", revision, node="node2"),
        fault("a", revision, node="node2"),
        incident("a", revision, node="node2"),
        outage("b", node="node2"),
        stall("b", node="node2"),
    )()

    assert pumped.pump.health.refused == 4
    assert _journal(pumped)[:2] == before
    assert pumped.reader.port_changes(0) == [change(node="node1")]
    assert pumped.position() == 2


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
