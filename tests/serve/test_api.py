"""What the API answers."""

import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from flapd.core.fabric.view import Repair, Snapshot
from flapd.model.fleet import Publishing
from flapd.model.times import SECOND_NS, Edge
from flapd.serve.agent import Health
from tests.serve.parts import FakeAgent, over_socket, over_tcp, port, view
from tests.store.outages import WALL_NS, outage, with_length


async def got(session: aiohttp.ClientSession, path: str) -> Any:
    async with session.get(path) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.content_type == "application/json"
        return await answer.json()


async def test_a_flap_is_told_with_every_field_of_the_contract(tmp_path: Path) -> None:
    down = Edge(10 * SECOND_NS, 10 * SECOND_NS + SECOND_NS // 10, WALL_NS)
    up = Edge(12 * SECOND_NS, 12 * SECOND_NS + SECOND_NS // 2, WALL_NS)
    agent = FakeAgent(tmp_path, [with_length(replace(outage("f1", 2), down=down, up=up))])

    async with over_tcp(agent, tmp_path) as session:
        answer = await got(session, "/api/v1/flaps")

    assert answer == {
        "items": [
            {
                "id": "f1",
                "revision": 2,
                "durable": True,
                "node": "node17",
                "port": "mlx5_0/1",
                "guid": "0x1",
                "member": None,
                "kind": "flap",
                "status": "closed",
                "cause": "link",
                "seen": "observed",
                "layer": "physical",
                "down": {
                    "earliest": "2023-11-14T22:13:30.000000Z",
                    "latest": "2023-11-14T22:13:30.100000Z",
                },
                "up": {
                    "earliest": "2023-11-14T22:13:32.000000Z",
                    "latest": "2023-11-14T22:13:32.500000Z",
                },
                "down_seconds": {"min": 1.9, "max": 2.5},
                "span_seconds": 2.5,
                "count": 1,
                "count_at_least": False,
                "settled": True,
                "after": None,
                "reason": None,
                "evidence": ["link_downed"],
                "boot": "boot-1",
                "grace": False,
                "black_box": False,
                "incidents": [],
                "gpu_seconds": None,
            }
        ],
        "next": None,
    }


async def test_an_open_flap_has_no_end_and_no_length(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [outage("f1", up=None)])

    async with over_tcp(agent, tmp_path) as session:
        (item,) = (await got(session, "/api/v1/flaps?status=open"))["items"]

    assert item["up"] is None
    assert item["down_seconds"] == {"min": None, "max": None}
    assert item["span_seconds"] is None


async def test_a_flap_is_found_by_its_id_and_tells_its_black_box(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [outage("a/b c"), outage("other", down=20, up=21)])

    async with over_tcp(agent, tmp_path) as session:
        answer = await got(session, "/api/v1/flaps/a%2Fb%20c")

    assert answer["id"] == "a/b c"
    assert answer["black_box_data"] is None


async def test_pages_follow_each_other_by_cursor(tmp_path: Path) -> None:
    many = [outage(f"f{number}", down=number, up=number + 0.5) for number in range(5)]
    agent = FakeAgent(tmp_path, many)
    seen: list[str] = []

    async with over_tcp(agent, tmp_path) as session:
        page = await got(session, "/api/v1/flaps?limit=2")
        seen += [item["id"] for item in page["items"]]
        while page["next"] is not None:
            page = await got(session, f"/api/v1/flaps?limit=2&cursor={page['next']}")
            seen += [item["id"] for item in page["items"]]

    assert seen == ["f4", "f3", "f2", "f1", "f0"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ("", {"long", "short", "subnet"}),
        ("min_down=3", {"long"}),
        ("min_down=3000ms", {"long"}),
        ("kind=drop", {"long"}),
        ("cause=subnet", {"subnet"}),
        ("layer=logical", {"subnet"}),
        ("seen=unseen", {"short"}),
        ("port=mlx5_1/1", {"subnet"}),
        ("guid=0x2", {"subnet"}),
        ("status=open", set()),
        ("cause=maintenance", set()),
        ("since=1700000012", {"long"}),
        ("since=2023-11-14T22:13:32Z", {"long"}),
        ("until=2023-11-14T22:13:26.5%2B00:00", {"subnet"}),
        ("until=1700000007&since=1700000005", {"subnet"}),
        ("since=1h", set()),
        ("kind=flap&cause=link", {"short"}),
    ],
)
async def test_filters_all_hold(tmp_path: Path, filters: str, found: set[str]) -> None:
    agent = FakeAgent(
        tmp_path,
        [
            outage("long", down=10, up=400, kind="drop"),
            outage("short", down=9, up=9.5, seen="unseen"),
            outage(
                "subnet", down=5, up=6, cause="subnet", layer="logical", port="mlx5_1/1", guid="0x2"
            ),
        ],
    )

    async with over_tcp(agent, tmp_path) as session:
        answer = await got(session, f"/api/v1/flaps?{filters}")

    assert {item["id"] for item in answer["items"]} == found


async def test_a_port_is_told_with_every_field_of_the_contract(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    edge = Edge(10 * SECOND_NS, 11 * SECOND_NS, WALL_NS)
    told = view(
        saturated=("counters/link_downed",),
        last_down=edge,
        expected_rate_mbps=400_000,
        downgraded=False,
        flapping=True,
        penalty=2500.5,
        maintenance=True,
        repaired=Repair(WALL_NS, "new cable"),
    )
    agent.shown = Snapshot(ports=(told,))

    async with over_tcp(agent, tmp_path) as session:
        (item,) = (await got(session, "/api/v1/ports"))["items"]

    assert 1 <= item.pop("stale_seconds") < 60
    assert item == {
        "id": "0002:c903:0000:0001/1",
        "revision": 1,
        "durable": True,
        "node": "node17",
        "port": "mlx5_0/1",
        "device": "mlx5_0",
        "number": 1,
        "guid": "0002:c903:0000:0001",
        "pci": "0000:3b:00.0",
        "driver": "mlx5_core",
        "link_layer": "InfiniBand",
        "netdev": "ib0",
        "state": "ACTIVE",
        "phys_state": "LinkUp",
        "rate_gbps": 400.0,
        "width": "4X",
        "expected_rate_gbps": 400.0,
        "bit_error_ratio": None,
        "bit_error_level": "good",
        "downgraded": False,
        "up": True,
        "watched": True,
        "ever_up": True,
        "witness": {"name": "link_downed", "value": 3, "status": "live"},
        "counters": {
            "link_downed": 3,
            "port_xmit_data": 2**63 + 1,
            "out_of_sequence": 7,
            "port_rcv_errors": None,
        },
        "saturated": ["link_downed"],
        "flapping": True,
        "penalty": 2500.5,
        "grace": False,
        "flaps_24h": 0,
        "last_down": {
            "earliest": "2023-11-14T22:13:30.000000Z",
            "latest": "2023-11-14T22:13:31.000000Z",
        },
        "readable": True,
        "maintenance": True,
        "members": [],
        "repaired": {"time": "2023-11-14T22:13:20.000000Z", "note": "new cable"},
        "peer": None,
        "module": None,
        "sources": {"sysfs": "on"},
    }


async def test_the_flaps_of_a_day_are_counted_for_each_port(tmp_path: Path) -> None:
    recent = replace(outage("f1", count=4), key=port().key, down=now_edge(), up=None, status="open")
    by_hand = replace(recent, id="f2", cause="admin")
    agent = FakeAgent(tmp_path, [recent, by_hand, outage("years ago", key=port().key)])
    agent.shown = Snapshot(ports=(view(), view(port(key="other", device="mlx5_1"))))

    async with over_tcp(agent, tmp_path) as session:
        answer = await got(session, "/api/v1/ports")

    assert [item["flaps_24h"] for item in answer["items"]] == [1, 0]


async def test_ports_are_told_in_pages_with_how_many_there_should_be(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    views = [view(port(key=f"k{number}", device=f"mlx5_{number}")) for number in range(5)]
    views[4] = replace(views[4], present=False)
    agent.shown = Snapshot(ports=tuple(views), ports_expected=8, is_scouted=True)
    keys, cursor = [], ""

    async with over_tcp(agent, tmp_path) as session:
        while True:
            page = await got(session, f"/api/v1/ports?limit=2&since=2h{cursor}")
            keys.append([item["id"] for item in page["items"]])
            if page["next"] is None:
                break
            cursor = f"&cursor={page['next']}"

    assert keys == [["k0", "k1"], ["k2", "k3"], ["k4"]]
    assert (page["expected"], page["found"]) == (8, 4)


async def test_which_ports_are_found_is_null_until_discovery_has_told(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.shown = Snapshot(ports=(view(readable=False),), blind=frozenset({"mlx5_0"}))

    async with over_tcp(agent, tmp_path) as session:
        listed = await got(session, "/api/v1/ports")

    assert (listed["found"], listed["blind"]) == (None, ["mlx5_0"])
    assert "cannot be looked at" in listed["items"][0]["sources"]["sysfs"]


async def test_without_a_history_ports_are_told_and_flaps_are_unavailable(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.shown = Snapshot(ports=(view(),))
    (tmp_path / "history.sqlite").write_bytes(b"no database" * 100)

    async with over_tcp(agent, tmp_path) as session:
        (item,) = (await got(session, "/api/v1/ports"))["items"]
        async with session.get("/api/v1/flaps") as answer:
            status, error = answer.status, (await answer.json())["error"]

    assert item["flaps_24h"] is None
    assert (status, error["code"]) == (503, "unavailable")
    assert str(tmp_path) not in error["message"]


async def test_the_socket_answers_as_tcp_does(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [outage("f1")])

    async with over_socket(agent, tmp_path) as session:
        assert (await got(session, "/api/v1/flaps"))["items"][0]["id"] == "f1"


async def test_health_is_told_while_the_process_lives(tmp_path: Path) -> None:
    async with over_tcp(FakeAgent(tmp_path), tmp_path) as session:
        answer = await got(session, "/healthz")

    assert answer["status"] == "ok"
    assert answer["node"] == "node17"


async def test_an_agent_without_its_fleet_is_ready_and_says_why_it_has_none(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)

    async with over_tcp(agent, tmp_path) as session:
        assert (await got(session, "/readyz"))["fleet"] is None
        agent.health = Health(fleet=Publishing(reason="no route"))
        assert (await got(session, "/readyz"))["fleet"] == "no route"
        agent.health = Health(fleet=Publishing(connected=True, reason=""))
        assert (await got(session, "/readyz"))["fleet"] == "connected"


async def test_ready_is_what_the_agent_calls_ready(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)

    async with over_tcp(agent, tmp_path) as session:
        assert (await got(session, "/readyz"))["reasons"] == []
        agent.reasons = ["mlx5_0/1 was not read yet", "the history cannot be written"]
        async with session.get("/readyz") as answer:
            status, body = answer.status, await answer.json()

    assert status == 503
    assert body["reasons"] == agent.reasons
    assert body["error"] == {
        "code": "unavailable",
        "message": "mlx5_0/1 was not read yet; the history cannot be written",
        "parameter": None,
    }


@pytest.mark.parametrize("path", ["/api/v1/ports", "/api/v1/flaps", "/healthz", "/metrics"])
async def test_head_has_the_headers_of_get_and_no_body(tmp_path: Path, path: str) -> None:
    async with (
        over_tcp(FakeAgent(tmp_path), tmp_path) as session,
        session.head(path) as head,
        session.get(path) as get,
    ):
        assert head.status == get.status == 200
        assert head.content_type == get.content_type
        assert await head.read() == b""


def now_edge() -> Edge:
    ns = time.monotonic_ns()
    return Edge(ns, ns, time.time_ns() - ns)
