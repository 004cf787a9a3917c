"""Where the server listens, who gets in, and how it ends."""

import asyncio
import grp
import os
import socket
import stat
import time
from pathlib import Path

import pytest

from flapd.model.errors import FlapdError
from flapd.serve import sockets
from flapd.serve.server import Server, agent_app
from flapd.serve.settings import HttpSettings, parse_listen
from tests.serve.parts import FakeAgent, over_socket, serving


async def test_the_socket_is_for_its_owner_and_group_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        async with serving(FakeAgent(tmp_path), tmp_path, listen=""):
            mode = (tmp_path / "flapd.sock").stat().st_mode
    finally:
        os.umask(before)

    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o660


async def test_the_socket_is_given_to_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = os.getgroups()[-1] if os.getgroups() else os.getgid()
    monkeypatch.setattr(sockets, "GROUP", grp.getgrgid(mine).gr_name)

    async with serving(FakeAgent(tmp_path), tmp_path, listen=""):
        assert (tmp_path / "flapd.sock").stat().st_gid == mine


async def test_a_socket_left_by_a_dead_agent_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "flapd.sock"))

    agent = FakeAgent(tmp_path)
    async with over_socket(agent, tmp_path) as session, session.get("/healthz") as answer:
        assert answer.status == 200


async def test_a_socket_somebody_answers_on_is_left_to_them(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with over_socket(FakeAgent(tmp_path), tmp_path) as session:
        second = Server(
            agent_app(FakeAgent(tmp_path / "other")), HttpSettings(""), tmp_path / "flapd.sock"
        )
        with pytest.raises(FlapdError, match="another agent answers"):
            await second.start()
        async with session.get("/healthz") as answer:
            assert answer.status == 200


async def test_a_file_in_the_place_of_the_socket_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "flapd.sock").write_text("precious")
    server = Server(agent_app(FakeAgent(tmp_path)), HttpSettings(""), tmp_path / "flapd.sock")

    with pytest.raises(FlapdError, match="is no socket"):
        await server.start()

    assert (tmp_path / "flapd.sock").read_text() == "precious"


async def test_a_port_in_use_is_named_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        server = Server(
            agent_app(FakeAgent(tmp_path)), HttpSettings(listen), tmp_path / "flapd.sock"
        )
        with pytest.raises(FlapdError, match=r"http\.listen.*in use"):
            await server.start()

    assert not (tmp_path / "flapd.sock").exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_any_address_of_ipv6_is_any_address_of_ipv4_too(tmp_path: Path, host: str) -> None:
    async with serving(FakeAgent(tmp_path), tmp_path, listen="[::]:0") as server:
        assert server.tcp_address is not None
        _, writer = await asyncio.open_connection(host, server.tcp_address[1])
        writer.close()
        await writer.wait_closed()


async def test_it_ends_quickly_with_clients_still_there(tmp_path: Path) -> None:
    server = Server(
        agent_app(FakeAgent(tmp_path)), HttpSettings("127.0.0.1:0"), tmp_path / "flapd.sock"
    )
    await server.start()
    assert server.tcp_address is not None
    idle = await asyncio.open_connection(*server.tcp_address)
    half = await asyncio.open_connection(*server.tcp_address)
    half[1].write(b"GET /healthz HTTP/1.1\r\nHo")
    began = time.monotonic()

    await server.stop()

    assert time.monotonic() - began < 2
    assert not (tmp_path / "flapd.sock").exists()
    for reader, writer in (idle, half):
        assert await asyncio.wait_for(reader.read(), 2) == b""
        writer.close()


@pytest.mark.parametrize(
    ("written", "listen"),
    [
        ("", None),
        ("0.0.0.0:19315", ("0.0.0.0", 19315)),
        ("[::]:19315", ("::", 19315)),
        ("[fe80::1]:1", ("fe80::1", 1)),
        ("node-17.cluster:65535", ("node-17.cluster", 65535)),
    ],
)
def test_where_to_listen_is_read(written: str, listen: tuple[str, int] | None) -> None:
    assert parse_listen(written) == listen


@pytest.mark.parametrize(
    "written", ["19315", ":19315", "::1:80", "[::]", "host:65536", "host:-1", "a b:1", "host:1 "]
)
def test_where_nobody_can_listen_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="an address and a port"):
        parse_listen(written)
