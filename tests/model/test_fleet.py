"""What passes over the fleet comes out as it went in; what is none of ours is refused."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.model.event import Event, PortChange, port_id
from flapd.model.fault import Fault
from flapd.model.fleet import (
    FLEET_VERSION,
    LARGEST_MESSAGE_BYTES,
    ClockState,
    FleetMessageError,
    Heartbeat,
    NodeEvent,
    decode_heartbeat,
    decode_node_event,
    encode,
)
from flapd.model.given import exactly
from flapd.model.incident import Incident
from flapd.model.loss import Range
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
        decode_node_event(encode(told(replace(event, **{name: absurd}))))


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (outage(revision=2**63), "revision"),
        (outage(revision=-1), "revision"),
        (outage(count=2**53), "count"),
        (outage(down=5e9), "earliest_ns"),
        (replace(stall(), wall_offset_ns=-(2**61)), "wall_offset_ns"),
        (fault(time_ns=2**63), "time_ns"),
        (job(gpus=-8), "gpus"),
        (job(world_size=exactly(2**60, "log")), "world_size"),
        (job(traffic_unseen_unix_ns=((1, 2**63),)), "traffic_unseen_unix_ns"),
        (incident(symptoms=(), affected_gpus=2**62), "affected_gpus"),
    ],
)
def test_numbers_that_cannot_be_are_refused_wherever_they_are(event: Event, name: str) -> None:
    with pytest.raises(FleetMessageError, match=f"{name} is"):
        decode_node_event(encode(told(event)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ib_timeout", "20"),
        ("ib_timeout", 20.0),
        ("ib_timeout", True),
        ("retry_cnt", None),
        ("retry_cnt", -7),
        ("timer_floor", 2**53),
        ("watchdog_seconds", []),
        ("watchdog_seconds", float("nan")),
        ("watchdog_seconds", float("-inf")),
        ("watchdog_seconds", 1e300),
        ("coordinated", 1),
        ("of_a_later_version", {"a": 1}),
    ],
)
def test_a_policy_s_values_are_what_they_should_be(name: str, value: object) -> None:
    usual = exactly(1.0, "log")
    for given_ in (replace(usual, value=value), replace(usual, low=value)):
        with pytest.raises(FleetMessageError, match=f"the policy's {name}"):
            decode_node_event(encode(told(job(policy={name: given_}))))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("heartbeat_seconds", float("inf")),
        ("heartbeat_seconds", -1.0),
        ("watchdog_seconds", 600),
        ("ib_timeout", 2**63 - 1),
        ("coordinated", False),
        ("schedule", "adaptive"),
        ("of_a_later_version", "yes"),
    ],
)
def test_a_job_s_environment_may_set_what_it_likes(name: str, value: object) -> None:
    event = job(policy={name: exactly(value, "environment")})

    assert decode_node_event(encode(told(event))) == told(event)


@pytest.mark.parametrize("absurd", [{"sent_unix_ns": 2**63}, {"every_seconds": float("inf")}])
def test_a_heartbeat_that_cannot_be_is_refused(absurd: dict[str, float]) -> None:
    with pytest.raises(FleetMessageError, match=next(iter(absurd))):
        decode_heartbeat(encode(replace(beat(), **absurd)))


def test_a_clock_may_be_off_to_either_side() -> None:
    clock = ClockState(True, -0.25, 0.001, 0.1)

    assert decode_heartbeat(encode(replace(beat(), clock=clock))).clock == clock


def test_what_a_node_reckons_its_own_loss_to_be_is_no_reason_to_refuse_what_it_saw() -> None:
    """Without a price an endless loss costs no number."""
    claim = incident(lost_seconds=Range(4.0, math.inf, math.inf), cost=Range(0.0, math.nan, 0.0))

    assert isinstance(decode_node_event(encode(told(claim))).event, Incident)


@pytest.mark.parametrize("name", ["\0node8", "\1leaf", "\n"])
def test_no_job_takes_the_place_of_what_is_of_none(name: str) -> None:
    with pytest.raises(FleetMessageError, match="a job of the name"):
        decode_node_event(encode(told(fault(job=name))))


def test_no_node_takes_the_id_of_another_s_port() -> None:
    own = PortChange(port_id("node7", "0x1/1"), 1, "node7", "0x1/1", "p/1", None, "found", "", 1, 1)

    assert decode_node_event(encode(told(own))).event == own
    with pytest.raises(FleetMessageError, match="is not the id of port 0x1/1 of node8"):
        decode_node_event(encode(told(replace(own, node="node8"))))
    with pytest.raises(FleetMessageError, match="a fault with the id of a port"):
        decode_node_event(encode(told(fault(own.id))))
