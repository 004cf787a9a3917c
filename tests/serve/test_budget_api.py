"""The step budget over HTTP: the projection, and what this node's links took of the period."""

import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from flapd.core.fabric.view import Snapshot
from flapd.model.event import Event, Outage
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS, Edge
from flapd.store.ring import RingWriter, ring_path
from tests.serve.parts import FakeAgent, over_socket, over_tcp, port, view
from tests.store.jobs import cause, incident
from tests.store.outages import outage, with_length

QUERY = "params=70e9&tokens=4194304&gpus=1024&peak=989e12&mfu=0.4"
MEASURED = 7.247725


def lasted(name: str, seconds: float, age: float = 3600.0, **changes: Any) -> Outage:
    """An outage of an hour ago that lasted just so long."""
    wall_ns = time.time_ns() - time.monotonic_ns()
    began_ns = time.monotonic_ns() - round(age * SECOND_NS)
    ended_ns = began_ns + round(seconds * SECOND_NS)
    down, up = Edge(began_ns, began_ns, wall_ns), Edge(ended_ns, ended_ns, wall_ns)
    return with_length(replace(outage(name), **{"down": down, "up": up, **changes}))


def stalled(name: str, stall_class: Any, seconds: float, age: float = 3600.0) -> Stall:
    begin_ns = time.monotonic_ns() - round(age * SECOND_NS)
    return Stall(
        id=name,
        revision=1,
        node="node17",
        job="4711",
        begin_ns=begin_ns,
        end_ns=begin_ns + round(seconds * SECOND_NS),
        resolution_ns=100_000_000,
        stall_class=stall_class,
        ports=(),
        expected_seconds=0.0,
        wall_offset_ns=time.time_ns() - time.monotonic_ns(),
    )


async def told(agent: FakeAgent, directory: Path, query: str = "", *, local: bool = True) -> Any:
    over = over_socket if local else over_tcp
    url = f"/api/v1/budget?{QUERY}{query}"
    async with over(agent, directory) as session, session.get(url) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def test_the_projection_needs_no_measured_time(tmp_path: Path) -> None:
    found = await told(FakeAgent(tmp_path), tmp_path)

    assert found["projected_seconds"] == pytest.approx(4.348635, abs=1e-6)
    assert found["measured_seconds"] is found["gap"] is None
    assert found["fabric"]["waited"]["flaps"] == 0
    assert found["fabric"]["over_seconds"] == pytest.approx(86_400, abs=5)


async def test_flaps_of_the_period_explain_their_part_of_the_gap(tmp_path: Path) -> None:
    flaps = [lasted(f"f{n}", 2.0, 3600.0 + 60 * n) for n in range(24)]
    agent = FakeAgent(tmp_path, [*flaps, lasted("dead", 60.0), lasted("own", 9.0, cause="admin")])

    found = await told(agent, tmp_path, f"&measured={MEASURED}")

    assert found["fabric"]["waited"]["flaps"] == 25
    assert found["fabric"]["waited"]["deaths"] == 1
    share = 24 * 4.294967296 / found["fabric"]["over_seconds"]
    assert found["gap"]["fabric_seconds"] == pytest.approx(MEASURED * share)
    assert found["gap"]["speed_share"] == pytest.approx(0.6, abs=1e-6)


async def test_only_what_overlaps_the_period_counts(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [lasted("f1", 2.0)])

    found = await told(agent, tmp_path, "&since=30m")

    assert found["fabric"]["waited"]["flaps"] == 0
    assert found["fabric"]["over_seconds"] == pytest.approx(1800, abs=5)


async def test_stalls_that_traffic_showed_are_told_by_class_and_cut_to_the_period(
    tmp_path: Path,
) -> None:
    agent = FakeAgent(tmp_path, [lasted("f1", 2.0)])
    events: list[Event] = [
        stalled("s1", "local_link", 4.3),
        stalled("s2", "remote", 20.0),
        stalled("s3", "checkpoint", 1000.0, age=2400.0),
    ]
    agent.happens(*events)

    found = await told(agent, tmp_path, "&since=30m&measured=8")
    day = await told(FakeAgent(tmp_path), tmp_path, "&measured=8")

    assert found["fabric"]["stalled_seconds"] == {"checkpoint": pytest.approx(400, abs=5)}
    assert day["fabric"]["stalled_seconds"]["local_link"] == pytest.approx(4.3)
    assert day["gap"]["fabric_seconds"] == pytest.approx(8 * 4.3 / 86_400, rel=1e-3)


async def test_one_job_s_part_is_told_apart_from_that_of_others(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [lasted("f1", 2.0), lasted("f2", 2.0)])
    agent.happens(
        stalled("s1", "local_link", 4.3), replace(stalled("s2", "remote", 20.0), job="4712")
    )
    agent.happens(incident("i1", 1, job="4711", causes=(cause("f1"),)))

    found = await told(agent, tmp_path, "&job=4711&measured=8")

    assert found["fabric"]["stalled_seconds"] == {"local_link": pytest.approx(4.3)}
    assert found["fabric"]["waited"]["flaps"] == 1


async def test_whose_part_is_asked_is_not_told_to_everybody(tmp_path: Path) -> None:
    url = f"/api/v1/budget?{QUERY}&job=4711"
    async with over_tcp(FakeAgent(tmp_path), tmp_path) as session, session.get(url) as answer:
        assert answer.status == 401


async def test_stalls_belong_to_jobs_and_are_not_told_to_everybody(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.happens(stalled("s1", "local_link", 4.3))

    found = await told(agent, tmp_path, local=False)

    assert found["fabric"]["stalled_seconds"] is None


async def test_retransmissions_are_those_of_the_samples_that_are_kept(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    name = "hw_counters/local_ack_timeout_err"
    now_ns = time.monotonic_ns()
    writer = RingWriter(
        ring_path(tmp_path, port().key, "slow"),
        key=port().key,
        counted_by="x",
        tier="slow",
        columns=[name],
        rows=16,
        boot="boot-1",
    )
    for second, value in enumerate([5, 5, 7, 2, 3]):
        at_ns = now_ns + (second - 10) * SECOND_NS
        writer.append(at_ns, at_ns, 1, {name: value})
    writer.close()
    agent.shown = Snapshot(
        ports=(view(values={name: 3}),), boot="boot-1", wall_offset_ns=time.time_ns() - now_ns
    )

    resent = (await told(agent, tmp_path, "&measured=8"))["fabric"]["resent"]

    assert resent["by_cause"] == {"ack_timeout": 3}
    assert resent["over_seconds"] == pytest.approx(4)
    assert resent["most_seconds"] == pytest.approx(3 * 4.294967296)


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("tokens=1&gpus=8&peak=1e12&mfu=0.4", "params"),
        ("params=1e9&tokens=1&peak=1e12&mfu=0.4", "gpus"),
        ("params=1e9&tokens=1&gpus=8&peak=1e12&mfu=0", "mfu"),
        ("params=1e9&tokens=1&gpus=8&peak=1e12&mfu=1.1", "mfu"),
        ("params=1e9&tokens=1&gpus=8&peak=1e12&mfu=0.4&measured=0", "measured"),
        ("params=1e9&tokens=1&gpus=8&peak=1e12&mfu=0.4&since=1h&until=2h", "until"),
        ("params=1e99&tokens=1&gpus=8&peak=1e12&mfu=0.4", "params"),
    ],
)
async def test_what_is_wrong_is_named(query: str, parameter: str, tmp_path: Path) -> None:
    url = f"/api/v1/budget?{query}"
    async with (
        over_socket(FakeAgent(tmp_path), tmp_path) as session,
        session.get(url) as answer,
    ):
        assert answer.status == 400
        assert (await answer.json())["error"]["parameter"] == parameter
