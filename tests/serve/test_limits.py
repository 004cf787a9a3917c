"""Clients that are slow, many, or hostile: each is answered or cut off, and nobody else waits."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from flapd.serve import connection, route
from flapd.serve.server import MOST_TCP_CONNECTIONS, Server
from tests.serve.parts import FakeAgent, over_socket, over_tcp, serving
from tests.store.outages import outage

HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


async def connected(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    assert server.tcp_address is not None
    return await asyncio.open_connection(*server.tcp_address)


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, Any]:
    """Status and JSON of one answer on a connection that may stay open."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    length = next(
        int(line.partition(b":")[2])
        for line in head.splitlines()
        if line.lower().startswith(b"content-length")
    )
    return int(head.split()[1]), json.loads(await reader.readexactly(length))


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""


@pytest.mark.parametrize("path", ["/healthz", "/nowhere", "/api/v1/flaps"])
async def test_an_expectation_that_is_none_is_refused_in_the_form_of_errors(
    tmp_path: Path, path: str
) -> None:
    async with (
        over_tcp(FakeAgent(tmp_path), tmp_path) as session,
        session.get(path, headers={"Expect": "miracles"}) as answer,
    ):
        error = (await answer.json())["error"]

    assert (answer.status, error["code"]) == (400, "bad_parameter")
    assert "miracles" in error["message"]


async def test_who_expects_to_continue_may(tmp_path: Path) -> None:
    async with (
        over_tcp(FakeAgent(tmp_path), tmp_path) as session,
        session.get("/healthz", headers={"Expect": "100-continue"}) as answer,
    ):
        assert answer.status == 200


async def test_many_requests_at_once_on_one_connection_are_answered_in_order(
    tmp_path: Path,
) -> None:
    async with serving(FakeAgent(tmp_path, [outage("f1")]), tmp_path) as server:
        reader, writer = await connected(server)
        for number in range(500):
            writer.write(f"GET /api/v1/flaps/x{number} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        messages = [(await answer_of(reader))[1]["error"]["message"] for _ in range(500)]
        writer.close()

    assert messages == [f"there is no flap x{number}" for number in range(500)]


async def test_a_thousand_clients_are_answered_or_told_that_they_are_too_many(
    tmp_path: Path,
) -> None:
    async def ask(server: Server) -> int:
        try:
            reader, writer = await connected(server)
            writer.write(HEALTHZ)
            head = await asyncio.wait_for(reader.readline(), 20)
        except ConnectionError:
            return 0
        held.append(writer)
        return int(head.split()[1]) if head else 0

    held: list[asyncio.StreamWriter] = []
    async with serving(FakeAgent(tmp_path), tmp_path) as server:
        statuses = await asyncio.gather(*(ask(server) for _ in range(900)))
        for writer in held:
            writer.close()
        async with over_socket_of(tmp_path) as session, session.get("/healthz") as answer:
            local = answer.status

    assert statuses.count(200) == MOST_TCP_CONNECTIONS
    assert statuses.count(429) > 0
    assert set(statuses) <= {0, 200, 429}
    assert local == 200


def over_socket_of(directory: Path) -> aiohttp.ClientSession:
    connector = aiohttp.UnixConnector(str(directory / "flapd.sock"))
    return aiohttp.ClientSession("http://flapd", connector=connector)


async def test_a_body_that_does_not_arrive_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route, "BODY_SECONDS", 0.05)
    monkeypatch.setattr(connection, "_LINGERING_SECONDS", 0.05)

    async with serving(FakeAgent(tmp_path), tmp_path, listen=""):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "flapd.sock"))
        writer.write(b"POST /api/v1/repaired HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
        status, body = await answer_of(reader)
        rest = await rest_of(reader)
        writer.close()

    assert (status, body["error"]["code"], rest) == (400, "bad_parameter", b"")


async def test_a_body_without_an_end_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_LINGERING_SECONDS", 0.05)

    async with serving(FakeAgent(tmp_path), tmp_path) as server:
        reader, writer = await connected(server)
        writer.write(HEALTHZ[:-2] + b"Content-Length: 99999999999\r\n\r\n" + b"x" * 100_000)
        status, _ = await answer_of(reader)
        rest = await rest_of(reader)
        writer.close()

    assert (status, rest) == (200, b"")


async def test_a_client_that_does_not_take_its_answer_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "WRITE_SECONDS", 0.1)
    aborted = asyncio.Event()
    abort = connection.Connection._abort

    def watched(self: connection.Connection) -> None:
        abort(self)
        aborted.set()

    monkeypatch.setattr(connection.Connection, "_abort", watched)
    long = [outage(f"f{number}", down=number, reason="x" * 8000) for number in range(1000)]

    async with serving(FakeAgent(tmp_path, long), tmp_path) as server:
        assert server.tcp_address is not None
        with socket.create_connection(server.tcp_address) as client:
            client.send(b"GET /api/v1/flaps?limit=1000 HTTP/1.1\r\nHost: a\r\n\r\n")
            await asyncio.wait_for(aborted.wait(), 20)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
        b"GET /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
        b"GET /healthz HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\0\0",
        bytes(range(256)) * 50,
    ],
)
async def test_garbage_harms_nobody(tmp_path: Path, sent: bytes) -> None:
    async with serving(FakeAgent(tmp_path), tmp_path) as server:
        reader, writer = await connected(server)
        writer.write(sent)
        if writer.can_write_eof():
            writer.write_eof()
        answer = await rest_of(reader)
        writer.close()
        other_reader, other = await connected(server)
        other.write(HEALTHZ)
        status, _ = await answer_of(other_reader)
        other.close()

    assert answer == b"" or answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400", b"HTTP/1.0 400"))
    assert status == 200


async def test_of_recordings_begun_at_one_time_one_runs_and_the_others_are_too_many(
    tmp_path: Path,
) -> None:
    async def begin(session: aiohttp.ClientSession) -> int:
        async with session.post("/api/v1/recording") as answer:
            return answer.status

    async with over_socket(FakeAgent(tmp_path), tmp_path) as session:
        statuses = await asyncio.gather(*(begin(session) for _ in range(8)))

    assert sorted(statuses) == [200] + 7 * [429]
