"""What the timeline draws: every kind of mark, the newest where there are many, for whom it may."""

from pathlib import Path
from typing import Any

import aiohttp

from flapd.core.fabric.view import Snapshot
from flapd.serve.query import LARGEST_LIMIT
from tests.serve.parts import FakeAgent, over_socket, over_tcp, port, view
from tests.store.jobs import fault, incident, stall
from tests.store.outages import WALL_NS, outage

BEGIN_MS = WALL_NS // 1_000_000
ALL = "/timeline?since=2020-01-01T00:00:00Z&until=2030-01-01T00:00:00Z"


async def marks(session: aiohttp.ClientSession, path: str = ALL) -> Any:
    async with session.get(path) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


def agent_with(directory: Path, *events: Any) -> FakeAgent:
    agent = FakeAgent(directory)
    agent.happens(*events)
    agent.shown = Snapshot(ports=(view(port(key="0x1/1")),), is_scouted=True)
    return agent


async def test_all_that_happened_is_on_one_clock_in_order(tmp_path: Path) -> None:
    events = (outage("a"), stall(), fault(at=11), incident(end=None), fault("undated", at=None))
    async with over_socket(agent_with(tmp_path, *events), tmp_path) as session:
        found = await marks(session)

    begin = BEGIN_MS + 10_000
    by_kind = {mark[0]: mark[1:] for mark in found["marks"]}
    assert [mark[2] for mark in found["marks"]] == [begin, begin, begin, begin + 1000]
    assert by_kind["outage"] == [
        *("mlx5_0/1", begin, begin, begin + 2000, begin + 2000),
        *("down, link, 2.00 s", "/flaps/a"),
    ]
    assert by_kind["stall"][0] == "job 4711"
    assert by_kind["stall"][5] == "traffic stands still, local link, 4.4 s"
    assert by_kind["fault"][5:] == ["watchdog timeout, rank 3", None]
    assert by_kind["incident"][3:5] == [None, None]
    assert found["partly"] is False


async def test_an_outage_that_goes_on_and_one_whose_end_is_lost_are_two_things(
    tmp_path: Path,
) -> None:
    events = (outage("open", up=None), outage("lost", down=20, up=None, status="lost"))
    async with over_socket(agent_with(tmp_path, *events), tmp_path) as session:
        found = (await marks(session))["marks"]

    begin = BEGIN_MS + 20_000
    assert [mark[4:7] for mark in found] == [
        [None, None, "down, link, still down"],
        [begin, begin, "down, link, end not known"],
    ]


async def test_what_belongs_to_jobs_is_left_out_for_everybody_else(tmp_path: Path) -> None:
    events = (outage("a"), stall(), fault(), incident())
    async with over_tcp(agent_with(tmp_path, *events), tmp_path) as session:
        found = await marks(session)

    assert [mark[0] for mark in found["marks"]] == ["outage"]


async def test_of_very_many_the_newest_are_drawn_and_the_picture_says_so(tmp_path: Path) -> None:
    events = [outage(f"f{i}", down=10 * i, up=10 * i + 1) for i in range(LARGEST_LIMIT + 5)]
    async with over_socket(agent_with(tmp_path, *events), tmp_path) as session:
        found = await marks(session)

    assert len(found["marks"]) == LARGEST_LIMIT
    assert found["marks"][0][7] == "/flaps/f5"
    assert found["partly"] is True


async def test_very_many_weigh_little_for_who_unpacks_them_and_are_the_same_for_all(
    tmp_path: Path,
) -> None:
    events = [outage(f"f{i}", down=10 * i, up=10 * i + 1) for i in range(LARGEST_LIMIT)]
    unpacking = {"Accept-Encoding": "gzip"}
    async with over_socket(agent_with(tmp_path, *events), tmp_path) as session:
        async with session.get(ALL, headers=unpacking) as answer:
            packed, bytes_packed = await answer.json(), int(answer.headers["Content-Length"])
        async with session.get(ALL, headers={"Accept-Encoding": "identity"}) as answer:
            plain, bytes_plain = await answer.json(), int(answer.headers["Content-Length"])

    assert packed == plain
    assert bytes_packed < bytes_plain / 5


async def test_a_span_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    async with (
        over_socket(agent_with(tmp_path), tmp_path) as session,
        session.get("/timeline?since=1h&until=2h") as answer,
    ):
        assert answer.status == 400
