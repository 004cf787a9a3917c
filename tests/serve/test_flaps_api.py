"""One outage with its black box, how it came back, and what happened in a span of time."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from flapd.core.fabric.view import Snapshot
from flapd.model.event import After
from tests.serve.parts import FakeAgent, over_tcp
from tests.store.kept import kept
from tests.store.outages import outage
from tests.store.rings import every, fill


async def got(session: aiohttp.ClientSession, path: str, status: int = 200) -> Any:
    async with session.get(path) as answer:
        assert answer.status == status, await answer.text()
        return await answer.json()


async def test_how_a_port_came_back_and_whose_member_it_was_is_told(tmp_path: Path) -> None:
    told = outage(
        "f1",
        after=After(100_000, True),
        member="eth1",
        reason="signal lost",
        grace=True,
    )

    async with over_tcp(FakeAgent(tmp_path, [told]), tmp_path) as session:
        (item,) = (await got(session, "/api/v1/flaps"))["items"]

    assert item["after"] == {"rate_gbps": 100.0, "downgraded": True}
    assert (item["member"], item["reason"], item["grace"]) == ("eth1", "signal lost", True)


async def test_a_flap_has_the_samples_around_it(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(1, 10, 200))
        whole.history.commit([outage("f1", down=105, up=107), outage("f2", down=9000, up=9001)], {})
        whole.look(200)

    async with over_tcp(FakeAgent(tmp_path), tmp_path) as session:
        listed = (await got(session, "/api/v1/flaps"))["items"]
        one = await got(session, "/api/v1/flaps/f1")
        without = await got(session, "/api/v1/flaps/f2")

    box = one.pop("black_box_data")
    assert [(item["id"], item["black_box"]) for item in listed] == [("f2", False), ("f1", True)]
    assert one == listed[1]
    assert box["columns"] == ["time", "link_downed", "port_xmit_data", "state"]
    assert box["rows"][0] == ["2023-11-14T22:14:30.000000Z", 70, 70, 70]
    assert (len(box["rows"]), box["pending"], box["incomplete"]) == (70, False, False)
    assert (without["black_box"], without["black_box_data"]["rows"]) == (False, [])


async def test_what_is_not_on_disk_has_no_black_box_yet(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.shown = Snapshot(undurable=(outage("f1"),))

    async with over_tcp(agent, tmp_path) as session:
        one = await got(session, "/api/v1/flaps/f1")

    assert (one["durable"], one["black_box"], one["black_box_data"]) == (False, False, None)


async def test_a_summary_adds_up_by_port_and_cause(tmp_path: Path) -> None:
    agent = FakeAgent(
        tmp_path,
        [
            outage("a", down=10, up=12, count=3),
            outage("b", down=20, up=21),
            outage("c", down=30, up=40, cause="admin"),
            outage("d", down=50, up=None, port="mlx5_1/1", cause="subnet"),
            outage("too late", down=900, up=901),
        ],
    )

    async with over_tcp(agent, tmp_path) as session:
        told = await got(session, "/api/v1/summary?since=1700000000&until=1700000100")

    def tally(outages: int, downs: int, seconds: float, endless: int = 0) -> dict[str, Any]:
        return {
            "outages": outages,
            "downs": downs,
            "down_seconds": {"min": seconds, "max": seconds},
            "endless": endless,
        }

    assert (told["since"], told["until"]) == (
        "2023-11-14T22:13:20.000000Z",
        "2023-11-14T22:15:00.000000Z",
    )
    assert told["flaps"] == tally(3, 5, 3.0, 1)
    assert told["by_cause"] == {
        "link": tally(2, 4, 3.0),
        "admin": tally(1, 1, 10.0),
        "subnet": tally(1, 1, 0.0, 1),
    }
    assert told["by_port"]["mlx5_0/1"] == {"link": tally(2, 4, 3.0), "admin": tally(1, 1, 10.0)}
    assert told["worst_ports"] == [
        {"port": "mlx5_0/1", "flaps": tally(2, 4, 3.0), "gpu_seconds": None},
        {"port": "mlx5_1/1", "flaps": tally(1, 1, 0.0, 1), "gpu_seconds": None},
    ]


async def test_a_summary_is_of_the_last_day_unless_asked(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [outage("years ago"), replace(outage("open", down=20, up=None))])

    async with over_tcp(agent, tmp_path) as session:
        told = await got(session, "/api/v1/summary")

    assert told["flaps"]["outages"] == 1


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("since=1h&until=2h", "until"),
        ("until=2d", "until"),
        ("since=x", "since"),
        ("by=port", "by"),
    ],
)
async def test_a_wrong_span_is_named(tmp_path: Path, query: str, parameter: str) -> None:
    async with over_tcp(FakeAgent(tmp_path), tmp_path) as session:
        error = (await got(session, f"/api/v1/summary?{query}", 400))["error"]

    assert error["parameter"] == parameter
