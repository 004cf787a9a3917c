"""Recordings are started, read and stopped over the Unix socket."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from flapd.serve import recording
from flapd.serve.agent import RecordingStatus
from tests.serve.parts import FakeAgent, over_socket

PATH = "/api/v1/recording"


async def asked(
    session: aiohttp.ClientSession, method: str, path: str = PATH
) -> tuple[int, dict[str, Any]]:
    async with session.request(method, path) as answer:
        return answer.status, await answer.json()


async def read(session: aiohttp.ClientSession, offset: int) -> tuple[bytes, str]:
    async with session.get(f"{PATH}?offset={offset}") as answer:
        assert answer.status == 200, await answer.text()
        return await answer.read(), answer.headers["X-Flapd-Recording-Active"]


async def test_a_recording_is_followed_to_its_end(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)

    async with over_socket(agent, tmp_path) as session:
        status, item = await asked(session, "POST", f"{PATH}?for=2m&max_bytes=5")
        agent.file.write_bytes(b"first")
        first = await read(session, 0)
        agent.file.write_bytes(b"first and second")
        second = await read(session, 5)
        stopped = await asked(session, "DELETE")
        end = await read(session, 16)

    assert status == 200
    assert (item["path"], item["bytes"], item["active"]) == (str(agent.file), 5, True)
    assert first == (b"first", "1")
    assert second == (b" and second", "1")
    assert stopped[1]["active"] is False
    assert stopped[1]["until"] is None
    assert end == (b"", "0")


async def test_a_long_recording_arrives_whole(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    content = bytes(range(256)) * 4000

    async with over_socket(agent, tmp_path) as session:
        await asked(session, "POST")
        agent.file.write_bytes(content)
        assert (await read(session, 1))[0] == content[1:]


async def test_head_tells_how_much_there_is(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)

    async with over_socket(agent, tmp_path) as session:
        await asked(session, "POST")
        agent.file.write_bytes(b"12345")
        async with session.head(f"{PATH}?offset=2") as answer:
            assert answer.headers["Content-Length"] == "3"


async def test_without_a_recording_there_is_nothing_to_read_or_stop(tmp_path: Path) -> None:
    async with over_socket(FakeAgent(tmp_path), tmp_path) as session:
        for method, path in (("GET", PATH), ("GET", f"{PATH}?offset=0"), ("DELETE", PATH)):
            status, body = await asked(session, method, path)
            assert (status, body["error"]["code"]) == (404, "not_found")


async def test_a_recording_whose_file_is_gone_is_not_found(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)

    async with over_socket(agent, tmp_path) as session:
        await asked(session, "POST")
        agent.file.unlink()
        status, body = await asked(session, "GET", f"{PATH}?offset=0")

    assert (status, body["error"]["code"]) == (404, "not_found")


async def test_only_one_recording_runs_at_a_time(tmp_path: Path) -> None:
    async with over_socket(FakeAgent(tmp_path), tmp_path) as session:
        await asked(session, "POST")
        status, body = await asked(session, "POST")
        await asked(session, "DELETE")
        again, _ = await asked(session, "POST")

    assert (status, body["error"]["code"]) == (429, "too_many")
    assert again == 200


async def test_a_recording_that_nobody_reads_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "UNREAD_SECONDS", 2.0)
    agent = FakeAgent(tmp_path)
    ended = asyncio.Event()
    stop = agent.stop_recording
    loop = asyncio.get_running_loop()

    def watched() -> RecordingStatus | None:
        status = stop()
        loop.call_soon_threadsafe(ended.set)
        return status

    monkeypatch.setattr(agent, "stop_recording", watched)

    async with over_socket(agent, tmp_path) as session:
        await asked(session, "POST")
        for _ in range(10):
            await read(session, 0)
        assert not ended.is_set()
        await asyncio.wait_for(ended.wait(), 10)
        status, item = await asked(session, "GET")

    assert (status, item["active"]) == (200, False)


async def test_why_it_cannot_start_is_told(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.disk_is_full = True

    async with over_socket(agent, tmp_path) as session:
        status, body = await asked(session, "POST")

    assert status == 503
    assert body["error"]["message"] == "no space is left for a recording"


@pytest.mark.parametrize(
    ("method", "query", "parameter"),
    [
        ("POST", "for=0", "for"),
        ("POST", "for=25h", "for"),
        ("POST", "for=long", "for"),
        ("POST", "max_bytes=-1", "max_bytes"),
        ("POST", "seconds=3", "seconds"),
        ("GET", "offset=-1", "offset"),
        ("GET", "offset=6", "offset"),
        ("DELETE", "offset=1", "offset"),
    ],
)
async def test_a_bad_parameter_is_named(
    tmp_path: Path, method: str, query: str, parameter: str
) -> None:
    agent = FakeAgent(tmp_path)

    async with over_socket(agent, tmp_path) as session:
        if method != "POST":
            await asked(session, "POST")
            agent.file.write_bytes(b"12345")
        status, body = await asked(session, method, f"{PATH}?{query}")

    assert (status, body["error"]["parameter"]) == (400, parameter)
