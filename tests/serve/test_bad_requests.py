"""Every wrong question is answered in the one form of errors."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from flapd.serve import connection
from flapd.serve.server import MOST_TCP_CONNECTIONS, Server
from tests.serve.parts import FakeAgent, over_tcp, serving

FLAPS = "/api/v1/flaps"

BAD_PARAMETERS = [
    (f"{FLAPS}?limit=0", "limit"),
    (f"{FLAPS}?limit=1001", "limit"),
    (f"{FLAPS}?limit=-1", "limit"),
    (f"{FLAPS}?limit=1e2", "limit"),
    (f"{FLAPS}?limit=%D9%A1", "limit"),
    (f"{FLAPS}?limit=", "limit"),
    (f"{FLAPS}?limit=5&limit=5", "limit"),
    (f"{FLAPS}?lmit=5", "lmit"),
    (f"{FLAPS}?kind=flop", "kind"),
    (f"{FLAPS}?status=shut", "status"),
    (f"{FLAPS}?cause=me", "cause"),
    (f"{FLAPS}?seen=no", "seen"),
    (f"{FLAPS}?layer=3", "layer"),
    (f"{FLAPS}?min_down=-1", "min_down"),
    (f"{FLAPS}?min_down=nan", "min_down"),
    (f"{FLAPS}?min_down=1e400", "min_down"),
    (f"{FLAPS}?min_down=soon", "min_down"),
    (f"{FLAPS}?since=yesterday", "since"),
    (f"{FLAPS}?since=nan", "since"),
    (f"{FLAPS}?since=-5", "since"),
    (f"{FLAPS}?since=999999999999", "since"),
    (f"{FLAPS}?since=2026-11-30", "since"),
    (f"{FLAPS}?since=2026-11-30T10:00:00", "since"),
    (f"{FLAPS}?since=2026-13-30T10:00:00Z", "since"),
    (f"{FLAPS}?since=0001-01-01T00:00:00%2B23:59", "since"),
    (f"{FLAPS}?until=9999999999999999999", "until"),
    (f"{FLAPS}?since=1h&until=2h", "until"),
    (f"{FLAPS}?cursor=nonsense", "cursor"),
    (f"{FLAPS}?cursor=%C3%A9", "cursor"),
    (f"{FLAPS}/f1?port=x", "port"),
    ("/api/v1/ports?limit=0", "limit"),
    ("/api/v1/ports?cursor=nonsense", "cursor"),
    ("/api/v1/ports?since=1h&until=2h", "until"),
    ("/api/v1/ports?port=mlx5_0/1", "port"),
    ("/api/v1/cost?gpus=8", "down"),
    ("/api/v1/cost?down=2", "gpus"),
    ("/api/v1/cost?gpus=8&down=2&every=0", "every"),
    ("/api/v1/cost?gpus=8&down=2&price=nan", "price"),
    ("/api/v1/cost?gpus=8&down=2&slowdown=1.5", "slowdown"),
    ("/api/v1/cost?gpus=8&down=2&hang=yes", "hang"),
    ("/api/v1/cost?gpus=8&down=2&nccl=new", "nccl"),
    ("/healthz?verbose", "verbose"),
    ("/metrics?name[]=x", "name[]"),
]


@pytest.mark.parametrize(("path", "parameter"), BAD_PARAMETERS)
async def test_a_bad_parameter_is_named(tmp_path: Path, path: str, parameter: str) -> None:
    async with over_tcp(FakeAgent(tmp_path), tmp_path) as session, session.get(path) as answer:
        error = (await answer.json())["error"]

    assert answer.status == 400
    assert (error["code"], error["parameter"]) == ("bad_parameter", parameter)
    assert len(error["message"]) > len(parameter) + 2


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "parameter"),
    [
        ("GET", "/nothing", 404, "not_found", None),
        ("GET", "/api/v1/flap", 404, "not_found", None),
        ("GET", "/api/v1/flaps/", 404, "not_found", None),
        ("GET", "/api/v1/flaps/none", 404, "not_found", "id"),
        ("POST", "/nowhere", 404, "not_found", None),
        ("GET", "/api/v1/recording", 404, "not_found", None),
        ("POST", "/api/v1/recording", 404, "not_found", None),
        ("DELETE", "/api/v1/recording", 404, "not_found", None),
        ("POST", "/api/v1/flaps", 405, "method_not_allowed", None),
        ("DELETE", "/api/v1/flaps/f1", 405, "method_not_allowed", None),
        ("OPTIONS", "/metrics", 405, "method_not_allowed", None),
        ("PATCH", "/healthz", 405, "method_not_allowed", None),
    ],
)
async def test_over_tcp_nothing_else_is_there(
    tmp_path: Path, method: str, path: str, status: int, code: str, parameter: str | None
) -> None:
    async with (
        over_tcp(FakeAgent(tmp_path), tmp_path) as session,
        session.request(method, path) as answer,
    ):
        error = (await answer.json())["error"]

    assert (answer.status, error["code"], error["parameter"]) == (status, code, parameter)
    assert answer.headers.get("Allow") == ("GET, HEAD" if status == 405 else None)


async def test_a_fault_inside_shows_no_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(FakeAgent):
        def not_ready(self) -> list[str]:
            raise ZeroDivisionError

    async with over_tcp(Broken(tmp_path), tmp_path) as session, session.get("/readyz") as answer:
        text = await answer.text()

    assert answer.status == 503
    assert json.loads(text)["error"]["code"] == "unavailable"
    assert "ZeroDivision" not in text
    assert "ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /healthz HTTP/9.x\r\n\r\n",
        b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 10_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_refused_and_cut_off(
    tmp_path: Path, request_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(FakeAgent(tmp_path), tmp_path) as server:
        status, body = await exchanged(server, request_bytes)

    assert status == 400
    assert body["error"]["code"] == "bad_parameter"
    assert caplog.text == ""


async def test_connections_beyond_the_cap_are_told_so_and_room_is_made_again(
    tmp_path: Path,
) -> None:
    async with serving(FakeAgent(tmp_path), tmp_path) as server:
        assert server.tcp_address is not None
        held = [
            await asyncio.open_connection(*server.tcp_address) for _ in range(MOST_TCP_CONNECTIONS)
        ]
        refused = await exchanged(server, b"")
        for _, writer in held:
            writer.close()
        await asyncio.gather(*(reader.read() for reader, _ in held), return_exceptions=True)
        accepted = await until_accepted(server)

    assert refused[0] == 429
    assert refused[1]["error"]["code"] == "too_many"
    assert accepted[0] == 200


async def test_a_client_that_never_ends_its_request_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.1)

    async with serving(FakeAgent(tmp_path), tmp_path) as server:
        assert server.tcp_address is not None
        reader, writer = await asyncio.open_connection(*server.tcp_address)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()


async def exchanged(server: Server, request_bytes: bytes) -> tuple[int, Any]:
    assert server.tcp_address is not None
    reader, writer = await asyncio.open_connection(*server.tcp_address)
    writer.write(request_bytes)
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


async def until_accepted(server: Server) -> tuple[int, Any]:
    request = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    for _ in range(100):
        status, body = await exchanged(server, request)
        if status != 429:
            break
    return status, body
