"""Who may read what belongs to jobs, and who may not."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace

from flapd.model.errors import FlapdError
from flapd.serve import server as server_module
from flapd.serve.access import Gate
from flapd.serve.answers import encoded, json_answer
from flapd.serve.credentials import credential_faults, tls_context
from flapd.serve.items import Estimate
from flapd.serve.route import Question, Route
from flapd.serve.routes import add_routes, build_app, empty_app
from flapd.serve.server import Server, agent_app
from flapd.serve.settings import HttpSettings
from flapd.serve.told import flap_item, without_jobs
from tests.serve.parts import FakeAgent, over_tcp, serving
from tests.store.outages import outage

JOBS = "/api/v1/jobs"
TOKEN = "s3cret-Token"


def token_file(directory: Path, token: str = TOKEN) -> str:
    path = directory / "token"
    path.write_text(f"{token}\n")
    path.chmod(0o600)
    return str(path)


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()


@asynccontextmanager
async def of_jobs(
    settings: HttpSettings, *, local: bool = False
) -> AsyncIterator[aiohttp.ClientSession]:
    """A listener with one route that belongs to jobs."""

    async def tell(_question: Question) -> web.Response:
        return json_answer(encoded({"items": ["tenant-7"]}))

    app = empty_app()
    add_routes(
        app, Gate(settings, local=local), [Route("GET", JOBS, "Jobs", tell, dict, access="jobs")]
    )
    async with (
        TestServer(app) as server,
        aiohttp.ClientSession(str(server.make_url("/"))) as session,
    ):
        yield session


async def asked(
    session: aiohttp.ClientSession, authorization: str | None, path: str = JOBS
) -> tuple[int, Any]:
    headers = {} if authorization is None else {"Authorization": authorization}
    async with session.get(path, headers=headers) as answer:
        return answer.status, await answer.json()


@pytest.mark.parametrize("authorization", [f"Bearer {TOKEN}", f"bearer  {TOKEN}", basic(TOKEN)])
async def test_the_token_opens_what_belongs_to_jobs(tmp_path: Path, authorization: str) -> None:
    async with of_jobs(HttpSettings(token_file=token_file(tmp_path))) as session:
        status, body = await asked(session, authorization)

    assert (status, body) == (200, {"items": ["tenant-7"]})


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "Bearer",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        "Bearer \u00e9",
        f"Digest {TOKEN}",
        basic("wrong"),
        "Basic !!!",
        TOKEN,
    ],
)
async def test_without_the_token_jobs_are_refused_and_the_keys_are_named(
    tmp_path: Path, authorization: str | None
) -> None:
    async with of_jobs(HttpSettings(token_file=token_file(tmp_path))) as session:
        status, body = await asked(session, authorization)

    assert status == 401
    assert body["error"]["code"] == "unauthorized"
    assert "http.token_file" in body["error"]["message"]


async def test_a_browser_is_asked_for_a_password() -> None:
    async with of_jobs(HttpSettings()) as session, session.get(JOBS) as answer:
        challenges = answer.headers.getall("WWW-Authenticate")
        message = (await answer.json())["error"]["message"]

    assert [challenge.split()[0] for challenge in challenges] == ["Bearer", "Basic"]
    assert "http.open" in message
    assert "no http.token_file is set" in message


@pytest.mark.parametrize(
    ("settings", "local"), [(HttpSettings(open=True), False), (HttpSettings(), True)]
)
async def test_where_reads_are_open_and_on_the_socket_everybody_sees_jobs(
    settings: HttpSettings, local: bool
) -> None:
    async with of_jobs(settings, local=local) as session:
        assert (await asked(session, None))[0] == 200


async def test_a_wrong_token_is_told_also_where_none_is_needed(tmp_path: Path) -> None:
    async with over_tcp(FakeAgent(tmp_path), tmp_path, token_file=token_file(tmp_path)) as session:
        assert (await asked(session, "Bearer wrong", "/api/v1/flaps"))[0] == 401
        assert (await asked(session, None, "/api/v1/flaps"))[0] == 200


async def test_another_token_in_the_file_is_the_token_from_then_on(tmp_path: Path) -> None:
    settings = HttpSettings(token_file=token_file(tmp_path))
    async with of_jobs(settings) as session:
        (tmp_path / "next").write_text("another")
        (tmp_path / "next").replace(settings.token_file)
        old = await asked(session, f"Bearer {TOKEN}")
        new = await asked(session, "Bearer another")
        (tmp_path / "token").unlink()
        none = await asked(session, "Bearer another")

    assert (old[0], new[0], none[0]) == (401, 200, 401)


async def test_a_token_that_everybody_can_read_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = HttpSettings(token_file=token_file(tmp_path))
    (tmp_path / "token").chmod(0o644)

    async with of_jobs(settings) as session:
        await asked(session, f"Bearer {TOKEN}")

    assert "token_file_readable_by_all" in capsys.readouterr().out


def test_only_those_who_see_jobs_are_told_what_belongs_to_them() -> None:
    item = replace(flap_item(outage("f1")), incidents=["i1"], gpu_seconds=Estimate(1, 2, 3))

    told = without_jobs(item)

    assert (told.incidents, told.gpu_seconds) == ([], None)
    assert replace(told, incidents=item.incidents, gpu_seconds=item.gpu_seconds) == item


async def test_no_route_that_changes_something_is_on_the_network(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    with ThreadPoolExecutor() as executor:
        gate = Gate(HttpSettings(), local=False)
        routes = build_app(agent, executor, gate, "errors", local=False).router.routes()
        local = build_app(agent, executor, gate, "errors", local=True).router.routes()

    assert {route.method for route in routes} == {"GET", "HEAD"}
    assert {route.method for route in local} == {"GET", "HEAD", "POST", "DELETE"}


class Authority:
    """Makes the files of a server and its clients."""

    def __init__(self, directory: Path) -> None:
        self.ca = trustme.CA()
        self.settings: dict[str, Any] = {
            "tls_cert": str(directory / "cert.pem"),
            "tls_key": str(directory / "key.pem"),
            "client_ca": str(directory / "ca.pem"),
        }
        self.ca.cert_pem.write_to_path(self.settings["client_ca"])
        self.issue()

    def issue(self) -> None:
        issued = self.ca.issue_cert("127.0.0.1")
        issued.private_key_pem.write_to_path(self.settings["tls_key"])
        Path(self.settings["tls_cert"]).write_bytes(
            b"".join(pem.bytes() for pem in issued.cert_chain_pems)
        )

    def client(self, of: "trustme.CA | None" = None) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        if of is not None:
            of.issue_cert("client@example.org").configure_cert(context)
        return context


async def answered(server: Server, context: ssl.SSLContext) -> tuple[int, bytes]:
    """Status, and the certificate that the server showed."""
    assert server.tcp_address is not None
    reader, writer = await asyncio.open_connection(*server.tcp_address, ssl=context)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    head, _, _ = (await reader.read()).partition(b"\r\n")
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return int(head.split()[1]), shown


async def test_a_client_certificate_is_as_good_as_a_token(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    settings = {**authority.settings, "token_file": token_file(tmp_path)}
    seen: list[bool] = []

    class Watched(Gate):
        def admits(self, request: web.Request) -> bool:
            seen.append(super().admits(request))
            return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_module, "Gate", Watched)
        async with serving(FakeAgent(tmp_path), tmp_path, **settings) as server:
            assert (await answered(server, authority.client()))[0] == 200
            assert (await answered(server, authority.client(authority.ca)))[0] == 200
            with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):
                await answered(server, authority.client(trustme.CA()))

    assert seen == [False, True]


def test_old_versions_of_tls_are_refused(tmp_path: Path) -> None:
    context = tls_context(HttpSettings(**Authority(tmp_path).settings))

    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


async def test_a_renewed_certificate_is_shown_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "RENEWAL_SECONDS", 0.02)
    authority = Authority(tmp_path)

    async with serving(FakeAgent(tmp_path), tmp_path, **authority.settings) as server:
        first = await answered(server, authority.client())
        (tmp_path / "key.pem").write_bytes(b"half written")
        still = await answered(server, authority.client())
        authority.issue()
        shown = first
        while shown == first:
            shown = await answered(server, authority.client())

    assert still == first
    assert shown[0] == 200


@pytest.mark.parametrize(
    ("written", "key", "right"),
    [
        ({"token_file": "none"}, "token_file", "cannot be read: No such file"),
        ({"token_file": "empty"}, "token_file", "is empty"),
        ({"token_file": "two"}, "token_file", "one line"),
        ({"tls_key": "key.pem"}, "tls_key", "needs http.tls_cert"),
        ({"client_ca": "ca.pem"}, "client_ca", "needs http.tls_cert"),
        ({"tls_cert": "none"}, "tls_cert", "cannot be read"),
        ({"tls_cert": "cert.pem", "tls_key": "none"}, "tls_key", "cannot be read"),
        ({"tls_cert": "cert.pem"}, "tls_cert", "PEM certificate"),
        ({"tls_cert": "cert.pem", "tls_key": "ca.pem"}, "tls_cert", "PEM certificate"),
        (
            {"tls_cert": "cert.pem", "tls_key": "key.pem", "client_ca": "empty"},
            "client_ca",
            "PEM",
        ),
    ],
)
async def test_a_file_that_cannot_be_used_is_named_and_stops_the_start(
    tmp_path: Path, written: dict[str, str], key: str, right: str
) -> None:
    Authority(tmp_path)
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "two").write_text("a\nb\n")
    paths: dict[str, Any] = {name: str(tmp_path / path) for name, path in written.items()}
    settings = HttpSettings("127.0.0.1:0", **paths)

    (fault,) = credential_faults(settings)
    with pytest.raises(FlapdError, match=rf"http\.{key}"):
        await Server(agent_app(FakeAgent(tmp_path)), settings, tmp_path / "flapd.sock").start()

    assert fault.key == key
    assert right in fault.right
    assert not (tmp_path / "flapd.sock").exists()
