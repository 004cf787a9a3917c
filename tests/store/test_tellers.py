"""Tellers: no node tells of another's things, and no id stands for two kinds of them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from flapd.model.event import Event
from flapd.store.history import History
from flapd.store.intake import Intake
from flapd.store.tellers import not_to_be_told
from tests.store.jobs import fault, incident, job, stall
from tests.store.outages import outage

A = "another node told of {} first"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "hub.sqlite"
    with closing(History(path)) as history:
        kept: list[Event] = [outage("flap-1"), fault("fault-1"), stall("stall-1"), job("job-1")]
        history.write(lambda connection: Intake().take(connection, kept, {}))
    with closing(sqlite3.connect(path)) as found:
        yield found


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (outage("flap-1", 2, node="node18"), A.format("flap-1")),
        (stall("stall-1", 2, node="node18"), A.format("stall-1")),
        (job("job-1", 2, node="node18"), A.format("job-1")),
        (fault("flap-1", 1), "flap-1 is the id of a flap"),
        (incident("fault-1"), "fault-1 is the id of a fault"),
        (outage("stall-1", 9), "stall-1 is the id of a stall"),
    ],
)
def test_what_is_kept_of_another_node_or_kind_is_refused(
    connection: sqlite3.Connection, event: Event, why: str
) -> None:
    assert not_to_be_told(connection, [outage("new"), event]) == {1: why}


@pytest.mark.parametrize(
    "event", [outage("flap-1", 2), stall("stall-1", 2), job("job-1", 2), fault("fault-1", 2)]
)
def test_who_told_of_it_goes_on(connection: sqlite3.Connection, event: Event) -> None:
    assert not_to_be_told(connection, [event]) == {}


def test_a_line_that_many_read_is_of_all_of_them(connection: sqlite3.Connection) -> None:
    both: list[Event] = [fault("fault-1", 1, node=node) for node in ("node18", "node19")]

    assert not_to_be_told(connection, both) == {}


def test_of_what_is_new_the_first_in_a_batch_holds(connection: sqlite3.Connection) -> None:
    events: list[Event] = [
        outage("b", 1, node="node1"),
        outage("b", 2, node="node2"),
        fault("b", node="node1"),
        outage("b", 3, node="node1"),
    ]

    assert not_to_be_told(connection, events) == {
        1: A.format("b"),
        2: "b is the id of a flap",
    }
