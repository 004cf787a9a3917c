"""The step budget at a hub: one job, all its nodes, each moment once, and what is not seen."""

import time
from typing import Any

import pytest
from msgspec.structs import replace

from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS
from tests.serve.hub.asking import asking, got
from tests.serve.hub.fake_hub import FakeHub, beat
from tests.store.jobs import cause, incident, job, stall
from tests.store.outages import WALL_NS, outage

NOW = (time.time_ns() - WALL_NS) // SECOND_NS
BEGAN = NOW - 7200
NODES = ("node1", "node2", "node3")
MODEL = "/api/v1/budget?params=70e9&tokens=4194304&gpus=1024&peak=989e12&mfu=0.4&measured=8"


def told_by(node: str, began: float = 0.0, **changes: Any) -> Stall:
    """Of 4.4 s, an hour ago."""
    begin = NOW - 3600 + began
    return stall(f"{node}-{begin}", node=node, begin=begin, end=begin + 4.4, **changes)


@pytest.fixture
def running(hub: FakeHub) -> FakeHub:
    """A job that has run on three nodes for two hours."""
    hub.hears(*(beat(node) for node in NODES))
    hub.happens(*(job(f"job-{node}", node=node, since=BEGAN) for node in NODES))
    return hub


async def budget(hub: FakeHub, query: str = "") -> Any:
    async with asking(hub) as session:
        return await got(session, MODEL + query)


async def refused(hub: FakeHub, query: str = "", *, sees_jobs: bool = True) -> tuple[int, Any]:
    async with asking(hub, sees_jobs=sees_jobs) as session, session.get(MODEL + query) as answer:
        return answer.status, (await answer.json())["error"]


async def test_a_stall_that_all_nodes_tell_of_is_one_stall_of_the_job(running: FakeHub) -> None:
    running.happens(
        told_by("node1"),
        *(told_by(node, stall_class="remote") for node in NODES[1:]),
        told_by("node3", 60.0, stall_class="checkpoint"),
    )

    found = await budget(running)
    ran_seconds = (time.time_ns() - WALL_NS) / SECOND_NS - BEGAN

    assert found["fabric"]["stalled_seconds"] == {
        "local_link": pytest.approx(4.4),
        "checkpoint": pytest.approx(4.4),
    }
    assert found["fabric"]["over_seconds"] == pytest.approx(ran_seconds, abs=60)
    assert found["gap"]["fabric_seconds"] == pytest.approx(8 * 4.4 / ran_seconds, rel=1e-2)


async def test_a_clock_that_is_wrong_makes_no_second_stall(running: FakeHub) -> None:
    wrong = time.time_ns() + 300 * SECOND_NS
    running.hears(beat("node2", sent_unix_ns=wrong), beat("node2", sent_unix_ns=wrong))
    ahead = told_by("node2", 300.0, stall_class="remote")
    running.happens(told_by("node1"), ahead)

    stalled = (await budget(running))["fabric"]["stalled_seconds"]

    assert stalled["local_link"] == pytest.approx(4.4)
    assert stalled["remote"] < 1.5


async def test_flaps_of_one_moment_on_many_nodes_hold_the_job_up_once(running: FakeHub) -> None:
    names = [f"flap-{node}" for node in NODES]
    down = {"down": NOW - 3600, "up": NOW - 3598}
    running.happens(
        *(outage(f"flap-{node}", node=node, **down) for node in NODES),
        outage("another-job's", node="node9", down=NOW - 1800, up=NOW - 1798),
        incident(
            nodes=NODES,
            causes=tuple(cause(name, node=name[5:]) for name in names),
            begin=NOW - 3600,
            end=NOW - 3590,
        ),
    )

    fabric = (await budget(running))["fabric"]

    assert fabric["waited"]["flaps"] == 3
    assert fabric["waited"]["seconds"]["low"] < 2.1
    assert fabric["stalled_seconds"] is None


async def test_flaps_are_waited_for_by_the_timeouts_of_that_job(running: FakeHub) -> None:
    long = {"down": NOW - 3600, "up": NOW - 3590}
    hit = incident(nodes=("node1",), causes=(cause("a", node="node1"),), begin=NOW - 3600)
    running.happens(outage("a", node="node1", **long), hit)
    patient = await budget(running)
    short = {"ib_timeout": job().policy["ib_timeout"]}
    short["ib_timeout"] = replace(short["ib_timeout"], value=14, low=14, high=14)
    running.happens(
        *(job(f"job-{node}", 1, node=node, since=BEGAN, policy=short) for node in NODES)
    )

    impatient = await budget(running)

    assert patient["fabric"]["waited"]["deaths"] == 0
    assert impatient["fabric"]["waited"]["deaths"] == 1


async def test_what_a_hub_cannot_see_is_said_and_is_no_zero(running: FakeHub) -> None:
    running.hears(beat("node3"), ago_seconds=100)

    found = await budget(running)

    assert found["fabric"]["resent"] is found["retransmissions_seconds"] is None
    assert found["fabric"]["tellers"] == {
        "job": "4711",
        "nodes": 3,
        "gpus": 24,
        "silent": ["node3"],
    }
    (resent,) = [one for one in found["unseen"] if one["what"] == "retransmissions"]
    assert "http://NODE:19315" in resent["metric"]


async def test_a_node_alone_may_be_asked_for(running: FakeHub) -> None:
    running.happens(told_by("node1"), told_by("node2", 60.0, stall_class="remote"))

    fabric = (await budget(running, "&node=node2"))["fabric"]

    assert (fabric["tellers"]["nodes"], fabric["tellers"]["gpus"]) == (1, 8)
    assert fabric["stalled_seconds"] == {"remote": pytest.approx(4.4)}


async def test_a_stall_whose_end_nobody_saw_counts_as_long_as_it_was_seen(
    running: FakeHub,
) -> None:
    running.happens(told_by("node1", end_unseen_ns=3 * SECOND_NS))

    stalled = (await budget(running))["fabric"]["stalled_seconds"]

    assert stalled["local_link"] == pytest.approx(1.4)


async def test_which_job_has_to_be_said_where_several_run(running: FakeHub) -> None:
    running.hears(beat("node4", jobs=("4712",)))

    status, error = await refused(running)

    assert (status, error["parameter"]) == (400, "job")
    assert error["message"].endswith("running now: 4711, 4712")
    assert (await budget(running, "&job=4711"))["fabric"]["tellers"]["nodes"] == 3


async def test_a_job_that_nobody_knows_has_no_flaps_that_could_be_counted(hub: FakeHub) -> None:
    status, error = await refused(hub, "&job=4713")

    assert (status, error["parameter"]) == (404, "job")
    assert error["message"] == "no node tells of job 4713 in that time"
    assert (await refused(hub, "&job=4713", sees_jobs=False))[0] == 401
