"""The page over HTTP: what is sent to whom, and under which policy."""

import time
from pathlib import Path

import aiohttp
import pytest
from msgspec.structs import replace

from flapd.core.fabric.view import Snapshot
from flapd.model.times import SECOND_NS
from tests.serve.parts import FakeAgent, over_socket, over_tcp, port, view
from tests.store.jobs import incident, job
from tests.store.outages import outage

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PAGES = ("/", "/incidents", "/incidents/incident-1", "/flaps", "/flaps/a", "/ports/mlx5_0/1")


def agent_with_flap(directory: Path) -> FakeAgent:
    agent = FakeAgent(directory, [outage("a")])
    agent.happens(job(), incident())
    agent.shown = Snapshot(ports=(view(port(key="0x1/1")),), is_scouted=True, wall_offset_ns=0)
    return agent


async def got(session: aiohttp.ClientSession, path: str, status: int = 200) -> str:
    async with session.get(path, headers=BROWSER) as answer:
        text = await answer.text()
        assert answer.status == status, text
        assert answer.content_type == "text/html"
        return text


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_forbids_what_it_did_not_bring(tmp_path: Path, path: str) -> None:
    async with (
        over_socket(agent_with_flap(tmp_path), tmp_path) as session,
        session.get(path, headers=BROWSER) as answer,
    ):
        policy = answer.headers["Content-Security-Policy"]
        text = await answer.text()
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"

    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert " style=" not in text
    assert "<style" not in text
    assert "<script>" not in text


@pytest.mark.parametrize("path", ["/incidents/none", "/flaps/none", "/ports/none/1"])
async def test_a_page_that_is_not_there_is_told_to_people_as_a_page(
    tmp_path: Path, path: str
) -> None:
    async with over_socket(agent_with_flap(tmp_path), tmp_path) as session:
        text = await got(session, path, 404)
        async with session.get(path) as answer:
            error = (await answer.json())["error"]

    assert "there is no" in text
    assert (answer.status, error["code"]) == (404, "not_found")


async def test_nothing_of_jobs_is_in_what_is_shown_to_everybody(tmp_path: Path) -> None:
    agent = agent_with_flap(tmp_path)
    async with over_tcp(agent, tmp_path) as session:
        pages = [await got(session, path) for path in ("/", "/flaps", "/flaps/a")]
        pages.append(await got(session, "/ports/mlx5_0/1"))
        refused = [await got(session, path, 401) for path in PAGES[1:3]]
        async with session.get("/incidents", headers=BROWSER) as answer:
            challenges = answer.headers.getall("WWW-Authenticate")

    assert "Nothing is wrong with the fabric<" in pages[0]
    for text in (*pages, *refused):
        assert "http.open" in text
        assert "4711" not in text
        assert "incident-1" not in text
        assert "USD" not in text
    assert any(one.startswith("Basic") for one in challenges)


async def test_who_may_see_jobs_sees_them(tmp_path: Path) -> None:
    async with over_tcp(agent_with_flap(tmp_path), tmp_path, open=True) as session:
        front, listed = await got(session, "/"), await got(session, "/incidents")
        story = await got(session, "/incidents/incident-1")
        flap = await got(session, "/flaps/a")

    for text in (front, listed):
        assert "job 4711: caused by mlx5_0/1 (98.0 %); absorbed" in text
        assert "1,024 GPUs lost 4.4 s each" in text
        assert "3.13 USD" in text
    assert "went down for 2 s and traffic of job 4711 stood still." in story
    assert "/incidents/incident-1" in flap


async def test_what_is_not_known_is_never_shown_as_nothing(tmp_path: Path) -> None:
    agent = agent_with_flap(tmp_path)
    unread = view(port(key="0x1/1"), up=None, readable=False, values={}, witness_value=None)
    agent.shown = Snapshot(ports=(unread,), is_scouted=True)
    unknown = incident(lost_seconds=None, parts=None, gpu_seconds=None, cost=None, regime=None)
    agent.happens(replace(unknown, revision=1))
    async with over_socket(agent, tmp_path) as session:
        front, one = await got(session, "/"), await got(session, "/ports/mlx5_0/1")
        story = await got(session, "/incidents/incident-1")

    assert "cannot be read: whether it is up is not known" in front
    assert "loss not known" in front
    assert "not known</td>" in front
    assert "It is not known what it cost." in story
    assert "It is not known yet what time it is." in one


async def test_what_is_wrong_and_what_is_planned_are_two_things(tmp_path: Path) -> None:
    agent = agent_with_flap(tmp_path)
    down = view(port(key="0x1/1"), up=False)
    planned = view(port(key="0x2/1", device="mlx5_1"), up=False, maintenance=True)
    agent.shown = Snapshot(ports=(down, planned), is_scouted=True)
    async with over_socket(agent, tmp_path) as session:
        front = await got(session, "/")

    wrong, _, rest = front.partition("Under maintenance")
    assert ("mlx5_0/1" in wrong, "mlx5_1/1" in wrong) == (True, False)
    assert "1 thing is wrong" in wrong
    assert "mlx5_1/1" in rest


async def test_a_well_node_says_that_nothing_is_wrong_only_where_it_can_see(tmp_path: Path) -> None:
    agent = agent_with_flap(tmp_path)
    async with over_socket(agent, tmp_path) as session:
        assert "Nothing is wrong<" in await got(session, "/")
        agent.reasons = ["mlx5_0/1 was not read yet"]
        unready = await got(session, "/")
    assert "1 thing is wrong" in unready
    assert "mlx5_0/1 was not read yet" in unready


async def test_ports_are_shown_while_the_history_cannot_be_read(tmp_path: Path) -> None:
    agent = agent_with_flap(tmp_path)
    async with over_socket(agent, tmp_path) as session:
        agent.history.close()
        (tmp_path / "history.sqlite").write_bytes(b"x" * 8192)
        front = await got(session, "/")

    assert "mlx5_0/1" in front
    assert "Not known: the history cannot be read." in front


async def test_lists_take_the_parameters_of_the_api_and_go_on(tmp_path: Path) -> None:
    agent = agent_with_flap(tmp_path)
    agent.happens(*(outage(f"f{i}", down=100 + i, up=101 + i) for i in range(5)))
    async with over_socket(agent, tmp_path) as session:
        first = await got(session, "/flaps?limit=2&port=mlx5_0/1")
        link = first.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
        second = await got(session, link.replace("&amp;", "&"))
        wrong = await session.get("/flaps?limit=0", headers=BROWSER)

    assert ("/flaps/f4" in first, "/flaps/f2" in first) == (True, False)
    assert ("/flaps/f4" in second, "/flaps/f2" in second) == (False, True)
    assert wrong.status == 400


async def test_what_the_disk_has_not_taken_is_shown_and_says_so(tmp_path: Path) -> None:
    agent = agent_with_flap(tmp_path)
    now_s = time.time_ns() // SECOND_NS - 1_700_000_000
    agent.shown = replace(agent.shown, undurable=(outage("new", down=now_s - 60, up=now_s - 58),))
    async with over_socket(agent, tmp_path) as session:
        front, one = await got(session, "/"), await got(session, "/flaps/new")

    assert "(not on disk yet)" in front
    assert "<dt>On disk</dt><dd>not yet</dd>" in one


async def test_a_file_is_sent_again_only_where_it_changed(tmp_path: Path) -> None:
    async with over_socket(agent_with_flap(tmp_path), tmp_path) as session:
        async with session.get("/page/live.js") as answer:
            tag, body = answer.headers["ETag"], await answer.read()
            assert answer.content_type == "text/javascript"
        async with session.get("/page/live.js", headers={"If-None-Match": tag}) as answer:
            again = answer.status, await answer.read()
        async with session.get("/page/..%2fapi.py") as answer:
            outside = answer.status

    assert body
    assert again == (304, b"")
    assert outside == 404
