"""The journal as server-sent events."""

import asyncio
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from flapd.core.fabric.view import Snapshot
from flapd.model.event import PortChange
from flapd.serve import answers, stream
from tests.serve.parts import FakeAgent, over_socket, over_tcp, port, serving, view
from tests.store.jobs import fault, incident, job, stall
from tests.store.outages import WALL_NS, outage

PATH = "/api/v1/stream"


class Listener:
    """A client of the stream."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer

    async def next(self) -> dict[str, str]:
        """The next event, or the next comment as `ping`."""
        block = await asyncio.wait_for(self.answer.content.readuntil(b"\n\n"), 10)
        fields = [line.partition(": ") for line in block.decode().strip().splitlines()]
        return {name or "ping": value for name, _, value in fields}

    async def event(self) -> tuple[str, int, Any]:
        found = await self.next()
        return found["event"], int(found["id"]), msgspec.json.decode(found["data"])


@asynccontextmanager
async def listening(
    session: aiohttp.ClientSession, last: int | None = None, query: str = ""
) -> AsyncIterator[Listener]:
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    async with session.get(f"{PATH}{query}", headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.content_type == "text/event-stream"
        listener = Listener(answer)
        assert await listener.next() == {"retry": "3000"}
        yield listener


def flapping(revision: int = 1, **changes: Any) -> PortChange:
    """Of the port of tests/serve/parts.py."""
    fields: dict[str, Any] = {
        "id": port().key,
        "revision": revision,
        "node": "node17",
        "key": port().key,
        "port": port().name,
        "guid": port().guid,
        "change": "flapping",
        "note": "penalty 2000",
        "recorded_ns": 0,
        "wall_offset_ns": WALL_NS,
    }
    return PortChange(**{**fields, **changes})


async def test_what_happens_from_now_on_is_told_as_the_list_tells_it(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [outage("before")])

    async with over_tcp(agent, tmp_path) as session, listening(session) as listener:
        agent.happens(outage("now", up=None))
        agent.happens(outage("now", 2))
        first, second = await listener.event(), await listener.event()
        async with session.get("/api/v1/flaps?limit=1") as answer:
            listed = (await answer.json())["items"]

    assert [first[:2], second[:2]] == [("flap", 2), ("flap", 3)]
    assert (first[2]["id"], first[2]["status"]) == ("now", "open")
    assert [{**second[2], "black_box": False}] == listed


async def test_a_change_of_a_port_is_told_with_the_port_as_it_is(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.shown = Snapshot(ports=(view(flapping=True),))

    async with over_tcp(agent, tmp_path) as session, listening(session) as listener:
        agent.happens(flapping(7), flapping(8, key="forgotten since"), outage("f1"))
        name, seq, item = await listener.event()
        after = await listener.event()

    assert (name, seq) == ("port", 1)
    assert (item["port"], item["revision"], item["flapping"]) == ("mlx5_0/1", 7, True)
    assert item["change"] == {
        "kind": "flapping",
        "note": "penalty 2000",
        "time": "2023-11-14T22:13:20.000000Z",
    }
    assert after[:2] == ("flap", 3)


async def test_a_change_of_a_member_is_told_with_its_bond(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    member = port(key=f"{port().key}/eth0", member="eth0")
    agent.shown = Snapshot(ports=(view(port(members=("eth0",))), view(member)))

    async with over_tcp(agent, tmp_path) as session, listening(session) as listener:
        agent.happens(flapping(key=member.key))
        _, _, item = await listener.event()

    assert (item["id"], item["members"]) == (port().key, ["eth0"])


@pytest.mark.parametrize(
    ("last", "query", "told"),
    [(1, "", 2), (None, "?last_event_id=0", 1), (2, "?last_event_id=0", 3), (3, "", 4)],
)
async def test_a_stream_goes_on_where_it_broke_off(
    tmp_path: Path, last: int | None, query: str, told: int
) -> None:
    """What it was told last is what a browser sends again."""
    agent = FakeAgent(tmp_path, [outage(f"f{number}", down=number) for number in (1, 2, 3)])

    async with over_tcp(agent, tmp_path) as session, listening(session, last, query) as listener:
        agent.happens(outage("new", down=4))
        assert (await listener.event())[:2] == ("flap", told)


@pytest.mark.parametrize(
    ("last", "kept_from", "gap"),
    [(0, 3, (2, 0, 3)), (1, 3, (2, 1, 3)), (1, 9, (3, 1, 4)), (99, 1, (3, 99, 4))],
)
async def test_what_is_gone_since_it_broke_off_is_told_as_a_gap(
    tmp_path: Path, last: int, kept_from: int, gap: tuple[int, int, int]
) -> None:
    """Retention removed it, or the number is of a history that was lost."""
    agent = FakeAgent(tmp_path, [outage(f"f{number}", down=number) for number in (1, 2, 3)])
    with closing(sqlite3.connect(agent.about.history, isolation_level=None)) as connection:
        connection.execute("DELETE FROM journal WHERE seq < ?", (kept_from,))

    async with over_tcp(agent, tmp_path) as session, listening(session, last) as listener:
        name, number, told = await listener.event()
        agent.happens(outage("new", down=4))
        after = await listener.event()

    assert (name, number, told["after"], told["next"]) == ("gap", *gap)
    assert after[:2] == ("flap", gap[2])


async def test_resuming_at_the_oldest_that_is_kept_is_no_gap(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [outage(f"f{number}", down=number) for number in (1, 2, 3)])
    with closing(sqlite3.connect(agent.about.history, isolation_level=None)) as connection:
        connection.execute("DELETE FROM journal WHERE seq < 3")

    async with over_tcp(agent, tmp_path) as session, listening(session, 2) as listener:
        assert (await listener.event())[:2] == ("flap", 3)


@pytest.mark.parametrize("number", ["x", "-1", "9" * 5000])
async def test_a_number_that_is_none_is_refused(tmp_path: Path, number: str) -> None:
    async with (
        over_tcp(FakeAgent(tmp_path), tmp_path) as session,
        session.get(PATH, headers={"Last-Event-ID": number}) as answer,
    ):
        error = (await answer.json())["error"]

    assert (answer.status, error["parameter"]) == (400, "Last-Event-ID")


async def test_a_long_past_is_told_whole_and_in_order(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [outage(f"f{number}", down=number) for number in range(250)])

    async with over_tcp(agent, tmp_path) as session, listening(session, 0) as listener:
        told = [(await listener.event())[1] for _ in range(250)]

    assert told == list(range(1, 251))


async def test_who_may_not_see_jobs_is_told_of_flaps_alone(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [outage("a")])
    agent.happens(incident(), *(fault(f"fault-{number}") for number in range(250)), outage("b"))
    told = []

    for over in (over_tcp, over_socket):
        async with over(agent, tmp_path) as session, listening(session, 0) as listener:
            name, _seq, first = await listener.event()
            told.append((name, first["incidents"], (await listener.event())[0]))

    assert told == [("flap", [], "flap"), ("flap", ["incident-1"], "incident")]


async def test_everything_of_jobs_is_streamed_as_the_lists_tell_it(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.happens(job(), stall(), fault(), incident())

    async with over_socket(agent, tmp_path) as session:
        listed = []
        for name in ("jobs", "stalls", "faults", "incidents"):
            async with session.get(f"/api/v1/{name}") as answer:
                listed += (await answer.json())["items"]
        async with listening(session, 0) as listener:
            told = [await listener.event() for _ in range(4)]
        async with listening(session, 3) as listener:
            resumed = await listener.event()

    assert [name for name, _seq, _item in told] == ["job", "stall", "fault", "incident"]
    assert [item for _name, _seq, item in told] == listed
    assert resumed == told[3]


async def test_a_quiet_stream_is_kept_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PING_SECONDS", 0.01)

    async with over_tcp(FakeAgent(tmp_path), tmp_path) as session, listening(session) as listener:
        assert await listener.next() == {"ping": "ping"}


async def test_no_more_streams_than_there_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MOST_STREAMS", 1)
    monkeypatch.setattr(stream, "PING_SECONDS", 0.01)

    async with over_tcp(FakeAgent(tmp_path), tmp_path) as session:
        async with listening(session), session.get(PATH) as answer:
            refused = answer.status, (await answer.json())["error"]["code"]
        status = 429
        while status == 429:  # until it is noticed that the first client has gone
            async with session.get(PATH) as answer:
                status = answer.status

    assert refused == (429, "too_many")
    assert status == 200


async def test_streams_end_at_once_with_the_server(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    async with aiohttp.ClientSession() as session:
        async with serving(agent, tmp_path) as server:
            assert server.tcp_address is not None
            host, number = server.tcp_address
            answer = await session.get(f"http://{host}:{number}{PATH}")
        rest = await asyncio.wait_for(answer.content.read(), 5)

    assert rest == b"retry: 3000\n\n"


async def test_a_client_that_takes_nothing_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = asyncio.Event()

    async def watched(*arguments: Any) -> None:
        try:
            await answers.written(*arguments)
        except ConnectionError:
            dropped.set()
            raise

    monkeypatch.setattr(stream, "written", watched)
    monkeypatch.setattr(answers, "WRITE_SECONDS", 0.1)
    much = [outage(f"f{number}", down=number, reason="x" * 4000) for number in range(2000)]

    async with serving(FakeAgent(tmp_path, much), tmp_path) as server:
        assert server.tcp_address is not None
        with socket.create_connection(server.tcp_address) as client:
            client.send(f"GET {PATH}?last_event_id=0 HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            await asyncio.wait_for(dropped.wait(), 20)
            taken = 0
            with suppress(ConnectionError):
                while piece := client.recv(1 << 20):
                    taken += len(piece)

    assert taken < 4000 * len(much)


async def test_head_does_not_begin_a_stream(tmp_path: Path) -> None:
    async with over_tcp(FakeAgent(tmp_path), tmp_path) as session, session.head(PATH) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
