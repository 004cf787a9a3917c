"""What a hub answers, by a real server over TCP and over its socket."""

import re
import time
from pathlib import Path
from urllib.parse import quote

import aiohttp

from flapd.model.times import SECOND_NS
from tests.serve.hub.asking import asking, got
from tests.serve.hub.fake_hub import FakeHub, beat, port
from tests.serve.hub.test_hub_elsewhere import ELSEWHERE
from tests.store.jobs import cause, fault, incident, job, stall
from tests.store.outages import WALL_NS, outage

ROOT = Path(__file__).parent.parent.parent.parent
NOW = (time.time_ns() - WALL_NS) // SECOND_NS


async def ids(session: aiohttp.ClientSession, path: str) -> list[str]:
    return [item["id"] for item in (await got(session, path))["items"]]


async def test_a_silent_node_is_unknown_and_so_is_everything_of_it(hub: FakeHub) -> None:
    flapping = port(flapping=True, up=False)
    hub.hears(beat("node1"))
    hub.hears(beat("node2", flapping), ago_seconds=91)

    async with asking(hub) as session:
        heard, silent = (await got(session, "/api/v1/nodes"))["items"]
        (there,) = (await got(session, "/api/v1/nodes/node2/ports"))["items"]
        drains = await got(session, "/api/v1/drains?node=node2")
        told = await got(session, "/api/v1/fleet")

    assert (heard["health"], silent["health"]) == ("healthy", "unknown")
    (reason,) = silent["reasons"]
    assert re.fullmatch(r"Nothing was heard for \d+ s\.", reason)
    assert (silent["ports"], silent["jobs"], silent["events_waiting"]) == (None, None, None)
    assert (there["up"], there["flapping"], there["readable"]) == (None, None, False)
    assert there["stale_seconds"] > 90
    assert (drains["items"], drains["node"], drains["known"]) == ([], None, False)
    assert told["nodes"] == {"known": 2, "healthy": 1, "unhealthy": 0, "unknown": 1}
    assert told["ports"]["watched"] == 1


async def test_nodes_and_ports_are_told_page_by_page(hub: FakeHub) -> None:
    bonded = (port(key=f"0x2/1+eth{number}", port="mlx5_1/1") for number in range(2))
    three = (port(), *bonded)
    hub.hears(*(beat(f"node{number}", *three) for number in range(5)))

    async with asking(hub) as session:
        for path, count in (("/api/v1/nodes", 5), ("/api/v1/ports", 15)):
            whole = (await got(session, f"{path}?limit=1000"))["items"]
            pieces, cursor = [], ""
            while True:
                page = await got(session, f"{path}?limit=2{cursor}")
                pieces += page["items"]
                if page["next"] is None:
                    break
                cursor = "&cursor=" + quote(page["next"])
            names = [(one["node"], one.get("port"), one.get("id")) for one in pieces]
            assert names == sorted({(one["node"], one.get("port"), one.get("id")) for one in whole})
            assert len(names) == count
        assert len((await got(session, "/api/v1/ports?node=node3"))["items"]) == 3


async def test_ports_of_one_name_are_told_apart_by_their_node(hub: FakeHub) -> None:
    hub.hears(beat("node1"), beat("node2"))
    hub.happens(
        *(outage(f"a{n}", node="node1", down=NOW - 60 - n, up=NOW - 58 - n) for n in (1, 2)),
        outage("b", node="node2", down=NOW - 50, up=NOW - 40),
        incident(
            nodes=("node2", "node1"),
            node="node2",
            begin=NOW - 50,
            end=NOW - 30,
            causes=(cause("b", node="node2"),),
        ),
    )

    async with asking(hub) as session:
        here = await got(session, "/api/v1/nodes/node1/ports/mlx5_0/1")
        summary = await got(session, "/api/v1/summary")
        there = await got(session, "/api/v1/incidents?node=node1")
        nowhere = await ids(session, "/api/v1/incidents?node=node3")

    assert (here["flaps_24h"], here["peer"]) == (2, {"switch": "leaf7", "port": "12"})
    assert sorted(summary["by_port"]) == ["node1 mlx5_0/1", "node2 mlx5_0/1"]
    assert [one["port"] for one in summary["worst_ports"]] == ["node1 mlx5_0/1", "node2 mlx5_0/1"]
    assert summary["flaps"]["outages"] == 3
    assert (there["items"][0]["node"], nowhere) == ("node2", [])


async def test_as_many_nodes_as_may_be_are_to_be_taken_out_the_worst_first(hub: FakeHub) -> None:
    flapping = port(flapping=True)
    planned = port(flapping=True, maintenance=True)
    hub.hears(beat("node1", flapping), beat("node2", flapping), beat("node3", planned))
    hub.hears(beat("node4"))
    hub.happens(*(outage(f"d{n}", node="node4", down=NOW - n, up=NOW - n) for n in range(5)))
    hub.happens(outage("x", node="node2", down=NOW - 9, up=NOW - 8, count=2))
    hub.shared = {"d4": "a switch"}

    async with asking(hub) as session:
        told = await got(session, "/api/v1/drains")
        few = await got(session, "/api/v1/drains?max_flaps=4&node=node4")

    wanted = [(one["node"], one["granted"]) for one in told["items"]]
    assert wanted == [("node4", True), ("node2", False), ("node1", False)]
    assert (few["node"], few["known"], few["cap"]) == (None, True, 1)


async def test_what_belongs_to_jobs_is_not_told_to_everybody(hub: FakeHub) -> None:
    hub.hears(beat("node1"))
    hub.happens(outage(), job(), fault(), stall(), incident(nodes=("node17",)))

    async with asking(hub, sees_jobs=False) as session:
        (node,) = (await got(session, "/api/v1/nodes"))["items"]
        fleet = await got(session, "/api/v1/fleet")
        refused = [
            (await session.get(f"/api/v1/{kind}?node=node1")).status
            for kind in ("jobs", "faults", "stalls", "incidents")
        ]
        page = await (await session.get("/")).text()

    assert (node["jobs"], node["blind_to"], fleet["incidents_open"]) == (None, None, None)
    assert refused == [401] * 4
    assert "4711" not in page


async def test_the_page_names_ports_with_their_node(hub: FakeHub) -> None:
    hub.hears(beat("node1"), beat("node2", port(up=False)))
    flap = outage("flap-1", node="node1", down=NOW - 60, up=NOW - 50)
    told = incident(
        nodes=("node1", "node2"), causes=(cause("flap-1", node="node1"),), begin=NOW - 60, end=NOW
    )
    hub.happens(flap, told, stall(node="node2"))

    async with asking(hub) as session:
        pages = {
            path: await (await session.get(path, headers={"Accept": "text/html"})).text()
            for path in (
                *("/", "/nodes", "/nodes/node2", "/flaps?node=node1", "/flaps/flap-1"),
                *("/incidents", "/incidents/incident-1", "/ports/node1%20mlx5_0/1"),
            )
        }
        gone = await session.get("/ports/node1%20mlx5_9/1")
        marks = await got(session, f"/timeline?since={(NOW + WALL_NS // SECOND_NS) - 90}")

    assert "node2" in pages["/"]
    assert "mlx5_0/1 is down." in pages["/"]
    for path in ("/", "/flaps?node=node1", "/flaps/flap-1", "/incidents/incident-1"):
        assert 'href="/ports/node1%20mlx5_0/1"' in pages[path], path
    assert "leaf7" in pages["/ports/node1%20mlx5_0/1"]
    assert gone.status == 404
    assert {mark[1] for mark in marks["marks"]} == {"node1 mlx5_0/1", "job 4711"}


async def test_readiness_and_metrics_say_how_far_the_stream_was_taken(hub: FakeHub) -> None:
    hub.hears(beat("node1"), beat("node2"), ago_seconds=100)
    hub.consuming.reason, hub.consuming.connected = "nats://a:4222: gone", False
    hub.consuming.missed, hub.consuming.waiting = 3, 17
    hub.consuming.taken_until_unix_ns = time.time_ns() - 60 * SECOND_NS

    async with asking(hub) as session:
        ready = await session.get("/readyz")
        metrics = await (await session.get("/metrics")).text()
        alive = await got(session, "/healthz")

    assert ready.status == 503
    assert "nats://a:4222: gone" in await ready.text()
    assert alive["cluster"] == "default"
    assert "flapd_fleet_connected 0.0" in metrics
    assert 'flapd_hub_nodes{health="unknown"} 2.0' in metrics
    assert "flapd_hub_events_missed_total 3.0" in metrics
    assert "flapd_hub_lag_events 17.0" in metrics
    assert 60 <= float(re.findall(r"flapd_hub_lag_seconds ([\d.]+)", metrics)[0]) < 90


async def test_the_stream_tells_items_with_their_node(hub: FakeHub) -> None:
    hub.hears(beat("node1"))
    async with asking(hub) as session, session.get("/api/v1/stream") as answer:
        assert (await answer.content.readline()).startswith(b"retry")
        hub.happens(stall(node="node1"))
        while not (line := await answer.content.readline()).startswith(b"data"):
            pass

    assert b'"node":"node1"' in line
    assert b'"ports":["mlx5_0/1"]' in line


async def test_what_a_hub_answers_is_documented(hub: FakeHub) -> None:
    document = (ROOT / "docs/fleet.md").read_text()
    agents = (ROOT / "docs/api.md").read_text()
    async with asking(hub) as session:
        paths = set((await got(session, "/api/v1/openapi.json"))["paths"])
        metrics = await (await session.get("/metrics")).text()

    documented = set(re.findall(r"`(/[\w./{}]*)`", document))
    told = documented | set(re.findall(r"`(/[\w./{}]+|/)`", agents))
    assert paths <= told
    elsewhere = {path for path in ELSEWHERE if path.startswith("/api/v1/")}
    assert {path for path in documented if path.startswith("/api/v1/")} - paths == elsewhere
    exported = set(re.findall(r"^# TYPE (flapd_\w+)", metrics, re.MULTILINE))
    text = (ROOT / "docs/metrics.md").read_text()
    assert {name for name in exported if f"`{name}`" not in text and "config" not in name} == set()
