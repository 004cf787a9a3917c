"""What passes over the fleet comes out as it went in; what is none of ours is refused."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.model.event import Event
from flapd.model.fault import Fault
from flapd.model.fleet import (
    FLEET_VERSION,
    LARGEST_MESSAGE_BYTES,
    FleetMessageError,
    Heartbeat,
    NodeEvent,
    decode_heartbeat,
    decode_node_event,
    encode,
)
from flapd.model.stall import Stall
from tests.store.jobs import fault, incident, job, stall
from tests.store.outages import outage

EVENTS = (outage(), fault(), stall(), job(), incident())


def told(event: Event, version: int = FLEET_VERSION) -> NodeEvent:
    return NodeEvent(version, "default", "node7", 12, event)


def beat(version: int = FLEET_VERSION) -> Heartbeat:
    return Heartbeat(
        version, "default", "node7", "1", "boot", 5, 6, 30.0, None, 9, 9, (), (), (), (), {}
    )


@pytest.mark.parametrize("event", EVENTS)
def test_every_kind_of_event_comes_out_as_it_went_in(event: Event) -> None:
    """A job's timeouts may be infinite."""
    assert decode_node_event(encode(told(event))) == told(event)


def test_an_event_is_known_by_its_id_and_revision() -> None:
    one = told(outage("flap-1", 3))

    assert (one.kind, one.message_id) == ("flap", "flap-1.3")


def test_a_heartbeat_comes_out_as_it_went_in() -> None:
    assert decode_heartbeat(encode(beat())) == beat()


def test_what_a_later_version_adds_is_ignored() -> None:
    fields = msgspec.msgpack.decode(encode(told(outage())))
    fields[-1]["brightness"] = 4

    assert decode_node_event(msgspec.msgpack.encode([*fields, "more"])) == told(outage())


def test_a_version_that_means_something_else_is_refused_and_named() -> None:
    body = encode(told(outage(), FLEET_VERSION + 1))

    with pytest.raises(FleetMessageError, match=f"version {FLEET_VERSION + 1}"):
        decode_node_event(body)


def test_a_heartbeat_is_no_event() -> None:
    with pytest.raises(FleetMessageError):
        decode_node_event(encode(beat()))


def test_what_is_larger_than_any_message_is_not_looked_at() -> None:
    with pytest.raises(FleetMessageError, match="larger"):
        decode_node_event(bytes(LARGEST_MESSAGE_BYTES + 1))


@pytest.mark.parametrize("body", [b"", b"\xc1", b"[]", b"\x90", b"\x91" * 100_000])
def test_what_is_none_of_ours_is_refused(body: bytes) -> None:
    with pytest.raises(FleetMessageError):
        decode_node_event(body)


@given(st.data())
def test_damage_is_refused_or_gives_an_event_and_nothing_else_happens(data: st.DataObject) -> None:
    body = bytearray(encode(told(outage())))
    at = data.draw(st.integers(0, len(body) - 1))
    body[at] = data.draw(st.integers(0, 255))

    try:
        found = decode_node_event(bytes(body))
    except FleetMessageError:
        return
    assert isinstance(found, NodeEvent)


@pytest.mark.parametrize("absurd", [float("inf"), float("nan"), 1e308, -1.0])
@pytest.mark.parametrize("event", [fault(), stall()])
def test_times_that_cannot_be_are_refused(event: Fault | Stall, absurd: float) -> None:
    name = "ran_seconds" if isinstance(event, Fault) else "expected_seconds"

    with pytest.raises(FleetMessageError, match=name):
        decode_node_event(encode(told(msgspec.structs.replace(event, **{name: absurd}))))
