"""A port that nobody watched for a while is not said to have been clean, also by a hub that began
again since."""

from contextlib import closing
from pathlib import Path

import pytest

from flapd.model.event import Change, PortChange, port_id
from flapd.model.fleet import FLEET_VERSION, NodeEvent
from simulators.cluster.fleet import Fleet
from simulators.cluster.names import guid, node_name, port_key, port_name
from simulators.cluster.spec import FleetSpec, PlacedJob
from simulators.job.happenings import SlowLoader
from simulators.job.spec import JobSpec
from tests.system.fleet_answers import FleetHub, ended
from tests.system.harness import until

pytestmark = pytest.mark.system

AT = 420.0
NODES = 4
NODE, PORT = 1, 2


def waiting_fleet() -> Fleet:
    """One rank comes late, which none of the nodes can see; no port goes down."""
    late = SlowLoader(AT, rank=3, late_seconds=20.0)
    spec = JobSpec(nodes=NODES, restarts=0, duration_seconds=AT + 120.0, happenings=(late,))
    return Fleet(FleetSpec(nodes=NODES, watched_from_seconds=240.0, jobs=(PlacedJob(spec),)))


def change(fleet: Fleet, revision: int, at: float, what: Change) -> NodeEvent:
    clock = fleet.clocks[NODE]
    told = PortChange(
        id=port_id(node_name(NODE), port_key(NODE, PORT)),
        revision=revision,
        node=node_name(NODE),
        key=port_key(NODE, PORT),
        port=port_name(PORT),
        guid=guid(NODE, PORT),
        change=what,
        note="",
        recorded_ns=clock.ns(at),
        wall_offset_ns=clock.wall_offset_ns,
    )
    return NodeEvent(FLEET_VERSION, fleet.spec.cluster, told.node, revision, told)


@pytest.mark.parametrize("starts_again", [pytest.param(False, marks=pytest.mark.long), True])
def test_what_went_through_a_port_that_was_gone_is_not_known(
    tmp_path: Path, *, starts_again: bool
) -> None:
    fleet = ended(waiting_fleet())
    told = [fleet.events_of(node) for node in range(NODES)]
    before = [[one.event for one in events if one.at < AT] for events in told]
    after = [[one.event for one in events if one.at >= AT] for events in told]
    gone = [change(fleet, 1, AT - 30.0, "gone"), change(fleet, 2, AT + 60.0, "back")]
    before[NODE] += gone
    with closing(FleetHub(fleet, tmp_path)) as heard:
        heard.nodes.tell(before)
        heard.wait()
        if starts_again:
            heard.kill_and_start()
        heard.nodes.tell(after)
        heard.wait()
        (found,) = until(lambda: heard.hub.items("incidents"), "the incident")

    assert (found["verdict"], found["blind_to"][0]) == ("unknown", "downs of 1 port of node001")
