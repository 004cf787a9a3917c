"""Jobs, faults, stalls and incidents over HTTP: field by field, and for whom."""

import math
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from flapd.core.fabric.view import Snapshot
from flapd.model.loss import Range
from flapd.model.times import SECOND_NS
from tests.serve.parts import FakeAgent, over_socket, over_tcp, port, view
from tests.store.jobs import cause, fault, incident, job, stall
from tests.store.outages import outage, unix

PATHS = ("jobs", "faults", "stalls", "incidents")
AT_100 = "2023-11-14T22:15:00.000000Z"


async def got(session: aiohttp.ClientSession, path: str, status: int = 200) -> Any:
    async with session.get(f"/api/v1/{path}") as answer:
        assert answer.status == status, await answer.text()
        return await answer.json()


def agent_with(directory: Path, *events: Any) -> FakeAgent:
    agent = FakeAgent(directory)
    agent.happens(*events)
    agent.shown = Snapshot(ports=(view(port(key="0x1/1")),), is_scouted=True)
    return agent


@pytest.mark.parametrize("path", [*PATHS, "faults/f1", "stalls/s1", "incidents/i1", "flaps?job=1"])
async def test_what_belongs_to_jobs_is_refused_and_the_key_that_opens_it_is_named(
    tmp_path: Path, path: str
) -> None:
    async with over_tcp(agent_with(tmp_path), tmp_path) as session:
        error = (await got(session, path, 401))["error"]

    assert error["code"] == "unauthorized"
    assert "http.open" in error["message"]


async def test_where_reads_are_open_all_of_it_is_told(tmp_path: Path) -> None:
    events = (job(), fault(), stall(), incident())
    async with over_tcp(agent_with(tmp_path, *events), tmp_path, open=True) as session:
        for path in PATHS:
            assert len((await got(session, path))["items"]) == 1


async def test_a_job_tells_its_policy_with_its_sources(tmp_path: Path) -> None:
    async with over_socket(agent_with(tmp_path, job()), tmp_path) as session:
        (item,) = (await got(session, "jobs"))["items"]

    assert (item["job"], item["kind"], item["world_size"]) == ("4711", "training", 1024)
    assert (item["ports"], item["port_uses"]) == (["mlx5_0/1"], {"mlx5_0/1": "queue_pair"})
    assert (item["local_ranks"], item["gpus"]) == ([*range(8)], 8)
    assert (item["since"], item["until"]) == ("2023-11-14T22:13:20.000000Z", None)
    assert item["policy"]["watchdog_seconds"] == {
        "value": 600.0,
        "low": 600.0,
        "high": 1800.0,
        "source": "default",
    }
    endless = item["policy"]["heartbeat_seconds"]
    assert endless == {"value": None, "low": None, "high": None, "source": "environment"}


async def test_a_fault_tells_when_by_which_clock_and_when_it_began(tmp_path: Path) -> None:
    told = fault(
        at=100,
        logged_ns=unix(100) + 3600 * SECOND_NS,
        arrived_ns=unix(100.5),
        clock_error_ns=SECOND_NS,
        ran_seconds=60.0,
        timeout_seconds=60.0,
        primary=True,
        status=12,
    )
    async with over_socket(agent_with(tmp_path, told), tmp_path) as session:
        (item,) = (await got(session, "faults"))["items"]
        one = await got(session, "faults/fault-1")
        error = (await got(session, "faults/none", 404))["error"]

    assert one == item
    assert (item["time"], item["started"]) == (AT_100, "2023-11-14T22:14:00.000000Z")
    assert (item["logged_time"], item["arrived"]) == (
        "2023-11-14T23:15:00.000000Z",
        "2023-11-14T22:15:00.500000Z",
    )
    assert (item["clock_error_seconds"], item["primary"], item["status"]) == (1.0, True, 12)
    assert item["source"] == {"file": "/var/log/train.log", "offset": 1024}
    assert (error["code"], error["parameter"]) == ("not_found", "id")


async def test_what_is_not_known_is_null(tmp_path: Path) -> None:
    events = (
        fault(at=None, rank=None, host=None, job=None, source=None),
        stall(end=None, ports=("0x9/1",)),
        incident(
            end=None,
            regime=None,
            lost_seconds=None,
            parts=None,
            assumed_share=None,
            gpu_seconds=None,
            cost=None,
            world_size=None,
        ),
    )
    async with over_socket(agent_with(tmp_path, *events), tmp_path) as session:
        (a_fault,) = (await got(session, "faults"))["items"]
        (a_stall,) = (await got(session, "stalls"))["items"]
        (an_incident,) = (await got(session, "incidents"))["items"]

    for name in ("time", "started", "rank", "host", "job", "source", "seq", "status"):
        assert a_fault[name] is None
    assert (a_stall["end"], a_stall["seconds"], a_stall["class"]) == (None, None, "local_link")
    assert a_stall["ports"] == ["0x9/1"]
    for name in ("end", "regime", "lost_seconds", "gpu_seconds", "cost", "world_size"):
        assert an_incident[name] is None
    assert an_incident["open"] is True


async def test_a_time_that_no_calendar_has_is_null_and_hides_nothing_else(tmp_path: Path) -> None:
    events = (fault("f1", at=101, ran_seconds=1e20), fault("f2", at=100))
    async with over_socket(agent_with(tmp_path, *events), tmp_path) as session:
        items = (await got(session, "faults"))["items"]

    assert [(item["id"], item["started"]) for item in items] == [("f1", None), ("f2", None)]
    assert items[1]["time"] == AT_100


async def test_an_incident_is_told_with_its_evidence(tmp_path: Path) -> None:
    events = (
        outage("a"),
        job(),
        job("job-0", since=-1000, until=-900),
        stall(),
        fault(),
        incident(symptoms=("stall-1", "fault-1", "gone")),
    )
    async with over_socket(agent_with(tmp_path, *events), tmp_path) as session:
        (item,) = (await got(session, "incidents"))["items"]
        one = await got(session, "incidents/incident-1")
        (flap,) = (await got(session, "flaps"))["items"]

    assert item["causes"] == [
        {
            "flap": "a",
            "port": "mlx5_0/1",
            "node": "node17",
            "probability": 0.98,
            "chance": 0.0119,
            "lag_seconds": 0.1,
            "symptom": "stall-1",
            "rho": None,
            "budget_seconds": None,
            "gpu_seconds": {"low": 4403.2, "likely": 4505.6, "high": 4608.0},
        }
    ]
    assert item["lost_seconds"] == {
        "low": 4.3,
        "likely": 4.4,
        "high": 4.5,
        "stall": 4.4,
        "detect": 0.0,
        "propagation": 0.0,
        "restart": 0.0,
        "rework": 0.0,
        "assumed_share": 0.0,
    }
    assert item["cost"] == {"low": 3.06, "likely": 3.13, "high": 3.2, "currency": "USD"}
    assert item["regimes"] == {"absorbed": 0.98, "hidden": 0.02}
    evidence = {name: one.pop(name) for name in ("flaps", "faults", "stalls", "job_item")}
    assert one == item
    assert evidence["flaps"] == [{**flap, "black_box": None}]
    assert [found["id"] for found in evidence["faults"]] == ["fault-1"]
    assert [found["id"] for found in evidence["stalls"]] == ["stall-1"]
    assert evidence["job_item"]["id"] == "job-1"


async def test_a_flap_tells_its_incidents_and_what_it_cost(tmp_path: Path) -> None:
    events = (outage("a"), outage("b", down=50, up=51), incident(), incident("i2", job="4712"))
    async with over_socket(agent_with(tmp_path, *events), tmp_path) as session:
        felt = (await got(session, "flaps?job=4712"))["items"]
        listed = {item["id"]: item for item in (await got(session, "flaps"))["items"]}
        one = await got(session, "flaps/a")

    assert [item["id"] for item in felt] == ["a"]
    assert listed["a"]["incidents"] == ["i2", "incident-1"]
    assert listed["a"]["gpu_seconds"] == {"low": 8806.4, "likely": 9011.2, "high": 9216.0}
    assert (listed["b"]["incidents"], listed["b"]["gpu_seconds"]) == ([], None)
    assert one["incidents"] == ["i2", "incident-1"]


async def test_fabric_peers_are_told_of_flaps_without_their_incidents(tmp_path: Path) -> None:
    async with over_tcp(agent_with(tmp_path, outage("a"), incident()), tmp_path) as session:
        (flap,) = (await got(session, "flaps"))["items"]
        one = await got(session, "flaps/a")
        summary = await got(session, "summary?since=1700000000&until=1700000100")

    assert (flap["incidents"], flap["gpu_seconds"]) == ([], None)
    assert (one["incidents"], one["gpu_seconds"]) == ([], None)
    assert [summary[name] for name in ("incidents", "gpu_seconds", "cost")] == [None] * 3
    assert [found["gpu_seconds"] for found in summary["worst_ports"]] == [None]


async def test_a_summary_tells_what_incidents_cost_at_the_price_configured(tmp_path: Path) -> None:
    loss = Range(3600, 7200, math.inf)
    events = (
        outage("a"),
        incident(gpu_seconds=loss, flap_gpu_seconds={"a": loss}),
        incident("i2", verdict="elsewhere", causes=(), gpu_seconds=None, flap_gpu_seconds={}),
        incident("too late", begin=1000, end=1001),
    )
    async with over_socket(agent_with(tmp_path, *events), tmp_path) as session:
        told = await got(session, "summary?since=1700000000&until=1700000100")

    caused = {
        "incidents": 1,
        "unpriced": 0,
        "gpu_seconds": {"low": 3600.0, "likely": 7200.0, "high": None},
        "cost": {"low": 2.5, "likely": 5.0, "high": None, "currency": "USD"},
    }
    assert told["incidents"]["by_verdict"]["caused"] == caused
    assert told["incidents"]["by_verdict"]["elsewhere"]["unpriced"] == 1
    assert told["incidents"]["total"]["incidents"] == 2
    assert told["incidents"]["open"] == 0
    assert told["gpu_seconds"] == caused["gpu_seconds"]
    assert told["cost"] == caused["cost"]
    assert told["worst_ports"][0]["gpu_seconds"] == caused["gpu_seconds"]


async def test_filters_span_and_cursor_lead_through_a_list(tmp_path: Path) -> None:
    events = [
        incident(f"i{number}", begin=number, end=number, verdict=verdict, causes=(cause(),))
        for number, verdict in enumerate(["caused", "unknown"] * 5)
    ]
    async with over_socket(agent_with(tmp_path, *events), tmp_path) as session:
        query = "incidents?verdict=unknown&job=4711&port=mlx5_0/1&since=1700000003&limit=2"
        first = await got(session, query)
        second = await got(session, f"{query}&cursor={first['next']}")
        none = await got(session, "incidents?regime=watchdog")

    assert [item["id"] for item in first["items"]] == ["i9", "i7"]
    assert [item["id"] for item in second["items"]] == ["i5", "i3"]
    assert (second["next"], none["items"]) == (None, [])


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("faults?kind=flap", "kind"),
        ("faults?rank=-1", "rank"),
        ("stalls?class=local", "class"),
        ("incidents?verdict=guilty", "verdict"),
        ("incidents?regime=x", "regime"),
        ("incidents?cursor=x", "cursor"),
        ("jobs?since=1h&until=2h", "until"),
        ("jobs?rank=1", "rank"),
    ],
)
async def test_a_wrong_filter_is_named(tmp_path: Path, query: str, parameter: str) -> None:
    async with over_socket(agent_with(tmp_path), tmp_path) as session:
        error = (await got(session, query, 400))["error"]

    assert (error["code"], error["parameter"]) == ("bad_parameter", parameter)


async def test_what_the_disk_has_not_taken_stands_on_top_and_says_so(tmp_path: Path) -> None:
    agent = agent_with(tmp_path, incident("i1"), incident("i2", begin=11))
    agent.shown = Snapshot(
        undurable=(outage("a"), incident("i1", 1, verdict="unknown"), incident("i3"), fault("f1"))
    )
    async with over_socket(agent, tmp_path) as session:
        items = (await got(session, "incidents"))["items"]
        known = (await got(session, "incidents?verdict=caused"))["items"]
        one = await got(session, "incidents/i1")
        (a_fault,) = (await got(session, "faults"))["items"]

    told = [(item["id"], item["verdict"], item["durable"]) for item in items]
    assert told == [("i3", "caused", False), ("i1", "unknown", False), ("i2", "caused", True)]
    assert [item["id"] for item in known] == ["i3", "i2"]
    assert (one["verdict"], one["durable"]) == ("unknown", False)
    assert (a_fault["id"], a_fault["durable"]) == ("f1", False)


async def test_an_incident_is_found_by_the_id_it_had_before_it_became_another(
    tmp_path: Path,
) -> None:
    events = (incident("i1"), incident("i2", supersedes=("i1",)))
    async with over_socket(agent_with(tmp_path, *events), tmp_path) as session:
        one = await got(session, "incidents/i1")

    assert (one["id"], one["supersedes"]) == ("i2", ["i1"])
