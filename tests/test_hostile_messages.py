"""Whatever a message says: it is refused at the door, or all behind the door can take it."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.fleet import FleetView
from flapd.model.event import Event, PortChange, port_id
from flapd.model.fleet import (
    FLEET_VERSION,
    FleetMessageError,
    Heartbeat,
    NodeEvent,
    decode_heartbeat,
    decode_node_event,
    encode,
)
from flapd.store.history import History
from flapd.store.intake import Intake
from tests.serve.hub.fake_hub import beat
from tests.store.jobs import fault, incident, job, stall
from tests.store.outages import WALL_NS, outage, unix

NODE, KEY = "node17", "0x1/1"
AN_ERROR = {
    "kind": "transport_error",
    "primary": True,
    "status": 12,
    "ran_seconds": 3.0,
    "timeout_seconds": 600.0,
    "hca": "mlx5_0",
    "port": 1,
}
STORY: tuple[Event, ...] = (
    job(stalls_seen_since_unix_ns=unix(0), shortest_stall_seconds=1.0),
    PortChange(port_id(NODE, KEY), 1, NODE, KEY, "mlx5_0/1", None, "found", "", 10**9, WALL_NS),
    outage("flap-a", 1, down=50, up=55),
    stall("stall-a", 1, begin=50.5, end=56, expected_seconds=0.0),
    fault("fault-a", 1, at=60, **AN_ERROR),
    incident(another_cause="a process failed", symptoms=("fault-a",)),
)
"""A flap that ends a job."""
LOOKS_AT_SECONDS = (57, 61, 70, 400, 4000, 90_000)
_EDGES = [2**bits for bits in (0, 5, 31, 40, 53, 60, 62, 63)]
HOSTILE = (
    *(one + more for one in _EDGES for more in (-1, 0, 1)),
    *(-one for one in _EDGES),
    *(2**64 - 1, 0, 0.0, -1.0, 0.5, 1e9, 1e15, -1e15, 1e300, 5e-324),
    *(float("nan"), float("inf"), float("-inf")),
    *("", "fixed", "\x00", "\x01", "x" * 10, None, True, False),
    *([], {}, [2**62, -5, 7], [["a", 1]], {"a": 2**62}, {"0x1/1": "traffic"}),
)


def places(whole: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of everything that can be said otherwise."""
    yield here
    if isinstance(whole, dict):
        for name, value in whole.items():
            yield from places(value, (*here, name))
    elif isinstance(whole, list):
        for number, value in enumerate(whole):
            yield from places(value, (*here, number))


def said_otherwise(whole: Any, place: Sequence[Any], value: Any) -> Any:
    if not place:
        return value
    try:
        copy = dict(whole) if isinstance(whole, dict) else list(whole)
        copy[place[0]] = said_otherwise(copy[place[0]], place[1:], value)
    except (KeyError, IndexError, TypeError):
        return whole  # what was there is something else already
    return copy


def plain(message: NodeEvent | Heartbeat) -> Any:
    return msgspec.msgpack.decode(encode(message))


@st.composite
def lies(draw: st.DrawFn, truth: Any, most: int = 3) -> bytes:
    """A message with up to so many values that it should not have."""
    where = [place for place in places(truth) if place]
    for place in draw(st.lists(st.sampled_from(where), max_size=most)):
        truth = said_otherwise(truth, place, draw(st.sampled_from(HOSTILE)))
    return msgspec.msgpack.encode(truth)


def let_in(body: bytes) -> list[NodeEvent]:
    try:
        return [decode_node_event(body)]
    except FleetMessageError:
        return []


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("hub") / "hub.sqlite"
    History(path).close()
    found = sqlite3.connect(path, isolation_level=None)
    yield found
    found.close()


def keep(connection: sqlite3.Connection, events: Sequence[Event]) -> None:
    connection.execute("BEGIN")
    try:
        Intake().take(connection, events, {})
    finally:
        connection.execute("ROLLBACK")


@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_event_that_is_let_in_stops_a_hub(
    data: st.DataObject, connection: sqlite3.Connection
) -> None:
    view = FleetView("default", JobSettings(), CostSettings())
    told: list[Event] = []
    for event in STORY:
        truth = plain(NodeEvent(FLEET_VERSION, "default", NODE, 1, event))
        for message in let_in(data.draw(lies(truth))):
            view.hear(message)
            told.append(message.event)

    for second in LOOKS_AT_SECONDS:
        told += view.look(unix(second))

    assert view.left_out() == []
    keep(connection, told)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(lies(plain(beat(NODE))))
def test_no_heartbeat_that_is_let_in_stops_a_hub(body: bytes) -> None:
    view = FleetView("default", JobSettings(), CostSettings())
    for event in STORY:
        view.hear(NodeEvent(FLEET_VERSION, "default", NODE, 1, event))
    try:
        heard = decode_heartbeat(body)
    except FleetMessageError:
        return

    view.beat(heard, unix(60))
    view.look(unix(61))
    (node, *_) = view.nodes(unix(62))

    assert node.node == heard.node or len(view.nodes(unix(62))) == 2
    assert view.left_out() == []
