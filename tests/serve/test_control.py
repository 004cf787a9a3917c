"""What people tell the agent over its Unix socket, and what it tells of itself there."""

import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from flapd import __version__
from flapd.core.fabric.view import MaintenanceView, Snapshot
from flapd.model.fleet import Publishing
from flapd.serve.agent import Health, RecordingStatus
from flapd.sources.job_reader_link import JobReaderHealth, ReaderHealth
from flapd.sources.read_health import ReadHealth
from tests.serve.parts import FakeAgent, over_socket, port, view
from tests.store.outages import WALL_NS

MAINTENANCE = "/api/v1/maintenance"
REPAIRED = "/api/v1/repaired"


async def asked(
    session: aiohttp.ClientSession, method: str, path: str, body: Any = None
) -> tuple[int, Any]:
    async with session.request(method, path, json=body) as answer:
        return answer.status, await answer.json()


def agent_with_ports(directory: Path) -> FakeAgent:
    agent = FakeAgent(directory)
    member = port(key=f"{port().key}/eth0", member="eth0")
    agent.shown = Snapshot(ports=(view(port(members=("eth0",))), view(member)))
    return agent


async def test_planned_work_begins_is_told_and_ends(tmp_path: Path) -> None:
    wish = {"for_seconds": 7200, "reason": "new switch", "port": None}
    before = time.time()

    async with over_socket(agent_with_ports(tmp_path), tmp_path) as session:
        begun = await asked(session, "POST", MAINTENANCE, wish)
        told = await asked(session, "GET", MAINTENANCE)
        ended = await asked(session, "DELETE", MAINTENANCE)
        after = await asked(session, "GET", MAINTENANCE)

    (item,) = begun[1]["maintenance"]
    assert begun == told
    assert (item["port"], item["reason"]) == (None, "new switch")
    assert item["until"] > time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(before + 7190))
    assert ended == after == (200, {"maintenance": []})


async def test_work_on_a_bond_is_work_on_its_members(tmp_path: Path) -> None:
    agent = agent_with_ports(tmp_path)
    wish = {"for_seconds": 60, "reason": "cable", "port": "mlx5_0/1"}

    async with over_socket(agent, tmp_path) as session:
        _, told = await asked(session, "POST", MAINTENANCE, wish)

    assert {planned.key for planned in agent.shown.maintenance} == {
        port().key,
        f"{port().key}/eth0",
    }
    assert {item["port"] for item in told["maintenance"]} == {"mlx5_0/1"}


async def test_a_repair_is_told_to_the_port_and_its_members(tmp_path: Path) -> None:
    agent = agent_with_ports(tmp_path)

    async with over_socket(agent, tmp_path) as session:
        wish = {"port": "mlx5_0/1", "note": "new cable"}
        assert await asked(session, "POST", REPAIRED, wish) == (200, wish)

    assert agent.repairs == [(port().key, "new cable"), (f"{port().key}/eth0", "new cable")]


@pytest.mark.parametrize(
    ("path", "body", "status", "parameter"),
    [
        (MAINTENANCE, {"for_seconds": 0, "reason": "x"}, 400, "for_seconds"),
        (MAINTENANCE, {"for_seconds": 1e9, "reason": "x"}, 400, "for_seconds"),
        (MAINTENANCE, {"for_seconds": "2h", "reason": "x"}, 400, "for_seconds"),
        (MAINTENANCE, {"for_seconds": 60, "reason": ""}, 400, "reason"),
        (MAINTENANCE, {"for_seconds": 60}, 400, "reason"),
        (MAINTENANCE, {"for_seconds": 60, "reason": "x", "ports": []}, 400, "ports"),
        (MAINTENANCE, {"for_seconds": 60, "reason": "x", "port": "mlx5_9/1"}, 404, "port"),
        (MAINTENANCE, [], 400, None),
        (REPAIRED, {}, 400, "port"),
        (REPAIRED, {"port": "mlx5_0/2"}, 404, "port"),
        (REPAIRED, {"port": "mlx5_0/1", "note": "x" * 501}, 400, "note"),
        (REPAIRED, {"port": "mlx5_0/1", "note": "x" * 9000}, 400, None),
    ],
)
async def test_a_wrong_body_names_its_field(
    tmp_path: Path, path: str, body: Any, status: int, parameter: str | None
) -> None:
    agent = agent_with_ports(tmp_path)

    async with over_socket(agent, tmp_path) as session:
        found, answer = await asked(session, "POST", path, body)

    assert (found, answer["error"]["parameter"]) == (status, parameter)
    assert (agent.shown.maintenance, agent.repairs) == ((), [])


async def test_what_is_no_json_is_told_so(tmp_path: Path) -> None:
    async with over_socket(FakeAgent(tmp_path), tmp_path) as session:
        for body in (b"", b"{", b"\xff\xfe"):
            async with session.post(REPAIRED, data=body) as answer:
                assert answer.status == 400
                assert (await answer.json())["error"]["message"] == "the body is not JSON"


async def test_the_status_is_what_one_asks_at_three_in_the_morning(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.health = Health(
        sampler_restarts=2,
        history_write_errors=3,
        events_not_durable=1,
        events_dropped=7,
        config_reloaded_ok=False,
        restart_needed=("http",),
        reads=ReadHealth(slowed={"mlx5_1": 4}, rings_missing={"mlx5_1": 3}),
        job_reader=JobReaderHealth(
            1, ReaderHealth(5, 600, 7, 8, 9, {"/var/log/a": "permission denied"}, 100)
        ),
        fleet=Publishing(reason="no route", outbox_events=4),
    )
    agent.reasons = ["the history cannot be written"]
    agent.status = RecordingStatus("/r", 5, True, WALL_NS)
    agent.shown = Snapshot(
        ports=(
            view(flapping=True, downgraded=True),
            view(port(key="b", device="mlx5_1"), up=False),
            view(port(key="c", device="mlx5_2"), up=None, readable=False),
            view(port(key="d", device="mlx5_3"), watched=False, up=False),
            view(port(key="e", device="mlx5_4"), present=False, watched=False, up=None),
        ),
        stuck_readers={"mlx5_2": time.monotonic_ns() - 10**9},
        maintenance=(MaintenanceView("b", WALL_NS, "cable"),),
        ports_expected=5,
        is_scouted=True,
    )

    async with over_socket(agent, tmp_path) as session:
        _, told = await asked(session, "GET", "/api/v1/status")

    assert told["uptime_seconds"] > 0
    assert told["history"].pop("bytes") > 0
    assert 1 <= told["sampler"]["stuck"].pop("mlx5_2") < 60
    told.pop("uptime_seconds")
    assert told == {
        "version": __version__,
        "node": "node17",
        "boot": "boot-1",
        "config": "/etc/flapd/flapd.toml",
        "config_ok": False,
        "restart_needed": ["http"],
        "ready": False,
        "reasons": ["the history cannot be written"],
        "sources": {"sysfs": True},
        "sampler": {
            "restarts": 2,
            "stuck": {},
            "slowed": {"mlx5_1": 4},
            "rings_missing": {"mlx5_1": 3},
        },
        "job_reader": {
            "restarts": 1,
            "files": 5,
            "bytes": 600,
            "behind_bytes": 100,
            "dumps": 9,
            "unknown_warnings": 7,
            "faults_held_back": 8,
            "failures": {"/var/log/a": "permission denied"},
        },
        "history": {
            "path": str(tmp_path / "history.sqlite"),
            "durable": False,
            "write_errors": 3,
            "events_not_durable": 1,
            "events_dropped": 7,
        },
        "recording": {
            "path": "/r",
            "bytes": 5,
            "active": True,
            "until": "2023-11-14T22:13:20.000000Z",
        },
        "ports": {
            "found": 4,
            "expected": 5,
            "watched": 3,
            "up": 1,
            "down": ["mlx5_1/1"],
            "unknown": ["mlx5_2/1"],
            "unreadable": ["mlx5_2/1"],
            "flapping": ["mlx5_0/1"],
            "downgraded": ["mlx5_0/1"],
            "gone": ["mlx5_4/1"],
        },
        "jobs": {"running": [], "blind_to": [], "incidents": []},
        "maintenance": [
            {"port": "mlx5_1/1", "until": "2023-11-14T22:13:20.000000Z", "reason": "cable"}
        ],
        "observations_refused": 0,
        "fleet": {
            "connected": False,
            "server": None,
            "reason": "no route",
            "outbox_events": 4,
            "events_published": 0,
            "events_lost": 0,
        },
    }
