"""A simulated fleet: what it tells, when it is heard, and what is true of it."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flapd.model.event import Outage, PortChange
from flapd.model.fleet import decode_heartbeat, decode_node_event
from flapd.model.incident import Incident
from flapd.model.times import SECOND_NS
from simulators.cluster.fleet import Fleet
from simulators.cluster.message import beat_message, event_message
from simulators.cluster.names import behind, topology_lines
from simulators.cluster.spec import (
    Flap,
    FleetSpec,
    Happening,
    Maintenance,
    Partition,
    PlacedJob,
    SwitchDown,
)
from simulators.errors import SimulatorError
from simulators.job.spec import JobSpec

AT = 100.0


def fleet(*happenings: Happening, nodes: int = 8, **changes: object) -> Fleet:
    job = PlacedJob(JobSpec(nodes=nodes, restarts=0, duration_seconds=AT + 150.0))
    spec = FleetSpec(nodes=nodes, pod_nodes=4, jobs=(job,), happenings=happenings)
    return Fleet(FleetSpec(**{**_fields(spec), **changes}))  # type: ignore[arg-type]


def _fields(spec: FleetSpec) -> dict[str, object]:
    return {name: getattr(spec, name) for name in spec.__struct_fields__}


def flap(node: int = 3, port: int = 2, seconds: float = 5.0) -> Flap:
    return Flap(at_seconds=AT, down_seconds=seconds, node=node, port=port)


happenings = st.lists(
    st.builds(
        Flap,
        at_seconds=st.floats(10.0, 200.0),
        down_seconds=st.floats(0.01, 300.0),
        node=st.integers(0, 7),
        port=st.integers(0, 8),
    ),
    max_size=3,
    unique_by=lambda one: (one.node, one.port),
)


@settings(max_examples=20)
@given(happenings=happenings, seed=st.integers(0, 1000))
def test_a_node_tells_in_order_and_each_revision_once(happenings: list[Flap], seed: int) -> None:
    found = fleet(*happenings, seed=seed, largest_skew_seconds=3.0)

    arrivals = list(found.events())

    assert [one.at for one in arrivals] == sorted(one.at for one in arrivals)
    assert len({one.event.message_id for one in arrivals}) == len(arrivals)
    for node in range(8):
        own = [one.event for one in arrivals if one.event.node == f"node{node:03d}"]
        assert [one.seq for one in own] == list(range(1, len(own) + 1))
        last: Counter[str] = Counter()
        for one in own:
            assert one.event.node == one.node
            assert one.event.revision == last[one.event.id] + 1
            last[one.event.id] += 1


@settings(max_examples=20)
@given(happenings=happenings, seed=st.integers(0, 1000))
def test_an_outage_holds_the_truth_by_the_clock_of_its_node(
    happenings: list[Flap], seed: int
) -> None:
    found = fleet(*happenings, seed=seed, largest_skew_seconds=3.0)

    truth = [*found.truth.innocent, *(link for one in found.truth.stories for link in one.links)]
    last = {one.event.event.id: one.event.event for one in found.events()}
    assert {one.id for one in truth} == {id_ for id_, e in last.items() if isinstance(e, Outage)}
    for link in truth:
        told = last[link.id]
        assert isinstance(told, Outage)
        assert told.up is not None
        clock = found.clocks[int(link.node.removeprefix("node"))]
        assert told.down.earliest_unix_ns <= clock.unix(link.begin) <= told.down.latest_unix_ns
        assert told.up.earliest_unix_ns <= clock.unix(link.end) <= told.up.latest_unix_ns
        assert told.down_ns_min is not None
        assert told.down_ns_max is not None
        down_ns = round((link.end - link.begin) * SECOND_NS)
        assert told.down_ns_min <= down_ns + 1000
        assert told.down_ns_max >= down_ns - 1000


def test_the_same_fleet_tells_the_same() -> None:
    first, second = (list(fleet(flap()).events()) for _ in range(2))

    assert first == second


def test_a_flap_that_stops_a_job_is_its_story_and_every_node_claims_the_loss() -> None:
    found = fleet(flap())

    (story,) = found.truth.stories
    assert [link.node for link in story.links] == ["node003"]
    assert story.gpu_seconds == pytest.approx(64 * story.lost_seconds)
    claims = [one.event.event for one in found.events() if isinstance(one.event.event, Incident)]
    assert {one.node for one in claims if one.verdict == "caused"} == {"node003"}
    closed = [one for one in claims if not one.open]
    assert len(closed) == 8
    assert {one.gpu_seconds.likely if one.gpu_seconds else 0 for one in closed} == {
        story.gpu_seconds
    }


def test_a_port_that_no_job_uses_hurts_nobody() -> None:
    found = fleet(flap(port=8, seconds=60.0))

    assert found.truth.stories == ()
    assert [link.node for link in found.truth.innocent] == ["node003"]


def test_a_dying_switch_takes_all_links_behind_it() -> None:
    found = fleet(SwitchDown(at_seconds=AT, down_seconds=9.0, switch="leaf-1-2"))

    (story,) = found.truth.stories
    assert {link.node for link in story.links} == {f"node{node:03d}" for node in (4, 5, 6, 7)}
    assert {link.switch for link in story.links} == {"leaf-1-2"}
    outages = {one.event.event.id for one in found.events() if one.event.kind == "flap"}
    assert len(outages) == 4


def test_a_spine_is_behind_one_rail_of_all_nodes() -> None:
    spec = fleet().spec

    assert list(behind(spec, "spine-3")) == [(node, 3) for node in range(8)]
    with pytest.raises(SimulatorError, match="neither leaf-POD-RAIL nor spine-RAIL"):
        list(behind(spec, "leaf-1"))


def test_a_node_that_is_cut_off_tells_in_order_afterwards_and_is_silent_meanwhile() -> None:
    cut = Partition(at_seconds=AT - 5.0, for_seconds=65.0, nodes=(3,))
    found, whole = fleet(flap(), cut), fleet(flap())

    assert [one.event for one in found.events_of(3)] == [one.event for one in whole.events_of(3)]
    assert not [one for one in found.events_of(3) if AT - 5.0 <= one.at < AT + 60.0]
    beats = [one.at for one in found.beats(0.0, 300.0) if one.beat.node == "node003"]
    assert beats
    assert not [at for at in beats if AT - 5.0 <= at < AT + 60.0]
    assert found.events_of(2) == whole.events_of(2)


def test_a_heartbeat_tells_by_the_clock_of_its_node_which_ports_are_down() -> None:
    found = fleet(flap(), largest_skew_seconds=3.0)

    beat = found.beat(3, AT + 1.0)

    assert {port.port for port in beat.ports if not port.up} == {"mlx5_2/1"}
    skew_ns = beat.sent_unix_ns - found.spec.origin_unix_ns - round((AT + 1.0) * SECOND_NS)
    assert skew_ns / SECOND_NS == pytest.approx(found.truth.skew_seconds["node003"])
    assert beat.jobs == ("4711",)


def test_planned_work_is_told_and_its_outage_says_so() -> None:
    work = Maintenance(at_seconds=AT - 10.0, for_seconds=60.0, node=3)
    found = fleet(flap(), work)

    told = [one.event.event for one in found.events_of(3)]
    assert {one.cause for one in told if isinstance(one, Outage)} == {"maintenance"}
    notes = [one.note for one in told if isinstance(one, PortChange)]
    assert Counter(notes) == {"begun": 9, "over": 9}


def test_nodes_that_read_one_log_tell_of_one_fault_under_one_id() -> None:
    job = PlacedJob(JobSpec(nodes=4, restarts=0, duration_seconds=300.0), log="shared")
    found = Fleet(FleetSpec(nodes=4, jobs=(job,), happenings=(flap(seconds=120.0),)))

    tellers: dict[str, set[str]] = {}
    for one in found.events():
        if one.event.kind == "fault" and getattr(one.event.event, "rank", None) is not None:
            tellers.setdefault(one.event.message_id, set()).add(one.event.node)
    assert tellers
    assert all(len(nodes) == 4 for nodes in tellers.values())


def test_its_messages_are_those_of_the_fleet() -> None:
    found = fleet(flap())
    arrival = random.Random(1).choice(list(found.events()))

    message, beat = event_message(arrival.event), beat_message(found.beat(1, 5.0))

    assert decode_node_event(message.body) == arrival.event
    assert message.subject == f"flapd.default.{arrival.event.node}.{arrival.event.kind}"
    assert message.id == arrival.event.message_id
    assert decode_heartbeat(beat.body) == found.beat(1, 5.0)
    assert (beat.subject, beat.id) == ("flapd-heartbeat.default.node001", None)


def test_the_topology_names_the_switch_of_every_port() -> None:
    lines = list(topology_lines(fleet().spec))

    assert lines[0] == "node,device,port,switch,switch_port"
    assert "node005,mlx5_2,1,leaf-1-2,2" in lines
    assert len(lines) == 1 + 8 * 9


def test_two_jobs_of_one_name_are_refused() -> None:
    job = PlacedJob(JobSpec(nodes=4))

    with pytest.raises(ValueError, match="one name"):
        FleetSpec(nodes=8, jobs=(job, job))
    with pytest.raises(ValueError, match="does not fit"):
        FleetSpec(nodes=3, jobs=(job,))
