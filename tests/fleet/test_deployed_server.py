"""The server as it is deployed: who shows which key may tell and read what, over TLS alone."""

import json
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
import trustme
from nats.aio.client import Client
from nats.errors import TimeoutError as NatsTimeoutError

from flapd.fleet.subjects import event_subject, heartbeat_subject, inbox_prefix
from flapd.model.fleet import FLEET_VERSION, NodeEvent, decode_node_event, encode
from tests.fleet.nats_server import (
    PATIENCE_SECONDS,
    ROOT,
    NatsServer,
    make_stream,
    messages,
    settled,
)
from tests.fleet.telling import NODE, Telling, telling
from tests.fleet.test_consume import Store, reading
from tests.fleet.test_publish import is_told, until
from tests.store.outages import outage

DEPLOYED = ROOT / "deploy/nats"
OTHER = "node18"


class Site:
    """A directory for everything, a server in it, and clients of it by the name of a user."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ca = trustme.CA()
        self.ca_file = directory / "ca.pem"
        self.ca.cert_pem.write_to_path(self.ca_file)
        certificate = self.ca.issue_cert("localhost")
        etc = directory / "nats"
        config = (DEPLOYED / "nats-server.conf").read_text()
        config = config.replace("/etc/flapd-nats", str(etc)).replace(":8222", ":-1")
        config = config.replace("/var/lib/flapd-nats", str(directory / "store"))
        self.server = NatsServer(etc, config)
        certificate.private_key_pem.write_to_path(etc / "server.key")
        for part in certificate.cert_chain_pems:
            part.write_to_path(etc / "server.pem", append=True)
        (etc / "users.conf").write_text((DEPLOYED / "users.conf").read_text())
        self.refused: list[str] = []

    @property
    def url(self) -> str:
        return self.server.url.replace("nats://127.0.0.1", "tls://localhost")

    def add_user(self, kind: str, name: str) -> Path:
        """The file with the seed."""
        command = [sys.executable, str(DEPLOYED / "add_user.py"), kind, name]
        command += ["--users", str(self.directory / "nats/users.conf")]
        command += ["--seeds", str(self.directory)]
        added = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": "."}
        )
        return Path(added.stdout.strip())

    async def client(self, name: str, **options: Any) -> Client:
        async def refused(error: Exception) -> None:
            self.refused.append(str(error))

        return await nats.connect(
            self.url,
            tls=ssl.create_default_context(cafile=str(self.ca_file)),
            nkeys_seed=str(self.directory / f"{name}.seed"),
            allow_reconnect=False,
            error_cb=refused,
            **options,
        )


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    found = Site(tmp_path)
    for kind, name in (("agent", NODE), ("agent", OTHER), ("hub", "hub"), ("admin", "admin")):
        found.add_user(kind, name)
    found.server.start()
    admin = await found.client("admin")
    await make_stream(admin)
    await admin.close()
    yield found
    found.server.kill()


@pytest.fixture
async def admin(site: Site) -> AsyncIterator[Client]:
    connection = await site.client("admin")
    yield connection
    await connection.close()


@pytest.fixture
async def agent(site: Site) -> AsyncIterator[Client]:
    connection = await site.client(NODE, inbox_prefix=inbox_prefix("default", NODE))
    yield connection
    await connection.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Telling]:
    with telling(tmp_path) as found:
        yield found


def told_of(node: str) -> bytes:
    return encode(NodeEvent(FLEET_VERSION, "default", node, 1, outage()))


async def asked(connection: Client, subject: str, body: bytes = b"") -> dict[str, Any]:
    answer = await connection.request(subject, body, timeout=PATIENCE_SECONDS)
    found: dict[str, Any] = json.loads(answer.data)
    return found


async def is_refused(connection: Client, subject: str, body: bytes = b"") -> bool:
    """The server answers nothing to what it does not let pass."""
    try:
        await connection.request(subject, body, timeout=0.2)
    except NatsTimeoutError:
        return True
    return False


async def test_an_agent_tells_for_its_own_node(site: Site, node: Telling, admin: Client) -> None:
    node.commit(outage())

    node.publish(
        site.url, tls_ca=str(site.ca_file), credentials=str(site.directory / f"{NODE}.seed")
    )
    await until(lambda: is_told(node), "all of it")

    (message,) = await messages(admin)
    assert decode_node_event(message.data).event == outage()


async def test_an_agent_may_not_tell_for_another_node(
    site: Site, agent: Client, admin: Client
) -> None:
    heard = await admin.subscribe("flapd-heartbeat.>")
    await settled(admin)

    assert await is_refused(agent, event_subject("default", OTHER, "flap"), told_of(OTHER))
    await agent.publish(heartbeat_subject("default", OTHER), b"")
    await agent.publish(heartbeat_subject("default", NODE), b"own")
    await settled(agent)

    await until(lambda: len(site.refused) == 2, "both refusals")
    assert await messages(admin) == []
    assert (await heard.next_msg(PATIENCE_SECONDS)).data == b"own"


@pytest.mark.parametrize(
    "subject",
    ["flapd.>", "flapd-heartbeat.>", "_INBOX.>", f"{inbox_prefix('default', OTHER)}.>", "$JS.>"],
)
async def test_an_agent_may_not_read_what_others_tell_or_are_told(
    site: Site, agent: Client, subject: str
) -> None:
    heard = await agent.subscribe(subject)

    await until(lambda: any("subscription" in error for error in site.refused), "the refusal")
    other = await site.client(OTHER, inbox_prefix=inbox_prefix("default", OTHER))
    answer = await asked(other, event_subject("default", OTHER, "flap"), told_of(OTHER))
    await settled(agent)
    assert answer["stream"] == "FLAPD"
    assert heard.pending_msgs == 0
    await other.close()


@pytest.mark.parametrize(
    "call",
    [
        "STREAM.DELETE.FLAPD",
        "STREAM.PURGE.FLAPD",
        "STREAM.UPDATE.FLAPD",
        "STREAM.MSG.DELETE.FLAPD",
        "STREAM.MSG.GET.FLAPD",
        "STREAM.CREATE.OTHER",
        "CONSUMER.CREATE.FLAPD",
        "CONSUMER.DURABLE.CREATE.FLAPD.mine",
    ],
)
async def test_an_agent_may_not_touch_the_stream(
    site: Site, agent: Client, admin: Client, call: str
) -> None:
    await asked(agent, event_subject("default", NODE, "flap"), told_of(NODE))

    assert await is_refused(agent, f"$JS.API.{call}", b"{}")

    assert len(await messages(admin)) == 1


async def test_a_hub_reads_everything_and_changes_nothing(
    site: Site, agent: Client, admin: Client
) -> None:
    await asked(agent, event_subject("default", NODE, "flap"), told_of(NODE))
    hub = await site.client("hub")
    beats = await hub.subscribe("flapd-heartbeat.>")
    await settled(hub)
    await agent.publish(heartbeat_subject("default", NODE), b"beat")

    events = await hub.jetstream().pull_subscribe("flapd.>", stream="FLAPD")
    (event,) = await events.fetch(1, timeout=PATIENCE_SECONDS)
    await event.ack_sync()

    assert decode_node_event(event.data).node == NODE
    assert (await beats.next_msg(PATIENCE_SECONDS)).data == b"beat"
    assert site.refused == []
    for call in ("STREAM.DELETE.FLAPD", "STREAM.PURGE.FLAPD", "STREAM.MSG.DELETE.FLAPD"):
        assert await is_refused(hub, f"$JS.API.{call}", b"{}")
    assert await is_refused(hub, event_subject("default", NODE, "flap"), told_of(NODE))
    assert len(await messages(admin)) == 1
    await hub.close()


async def test_nobody_deletes_single_events_not_even_an_administrator(
    agent: Client, admin: Client
) -> None:
    await asked(agent, event_subject("default", NODE, "flap"), told_of(NODE))

    deleted = await asked(admin, "$JS.API.STREAM.MSG.DELETE.FLAPD", b'{"seq": 1}')
    purged = await asked(admin, "$JS.API.STREAM.PURGE.FLAPD")

    assert "error" in deleted
    assert "error" in purged
    assert len(await messages(admin)) == 1


async def test_a_key_that_the_server_does_not_know_is_refused_until_it_is_added(
    site: Site, node: Telling
) -> None:
    users = site.directory / "nats/users.conf"
    before = users.read_text()
    seed = site.add_user("agent", NODE)  # another key in place of the one that the server knows
    assert len(users.read_text().splitlines()) == len(before.splitlines())
    node.commit(outage())
    node.publish(site.url, tls_ca=str(site.ca_file), credentials=str(seed))
    await until(lambda: "Authorization Violation" in node.state().reason, "the reason")

    site.server.signal(signal.SIGHUP)

    await until(lambda: is_told(node), "all of it")


async def test_a_seed_is_for_its_owner_alone(site: Site) -> None:
    assert (site.directory / f"{NODE}.seed").stat().st_mode & 0o777 == 0o600


async def test_a_server_with_a_certificate_of_somebody_else_is_told_nothing(
    site: Site, node: Telling, admin: Client
) -> None:
    other = site.directory / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    node.commit(outage())

    node.publish(site.url, tls_ca=str(other), credentials=str(site.directory / f"{NODE}.seed"))
    await until(lambda: "certificate verify failed" in node.state().reason, "the reason")

    assert await messages(admin) == []


async def test_without_a_key_nobody_is_let_in(site: Site, node: Telling) -> None:
    node.publish(site.url, tls_ca=str(site.ca_file))

    await until(lambda: "Authorization Violation" in node.state().reason, "the reason")
    assert not node.state().connected


async def test_a_hub_reads_all_that_the_nodes_tell(site: Site, node: Telling) -> None:
    """With no more rights than it is given."""
    node.commit(outage())
    node.publish(
        site.url, tls_ca=str(site.ca_file), credentials=str(site.directory / f"{NODE}.seed")
    )
    store = Store()
    credentials = {"tls_ca": str(site.ca_file), "credentials": str(site.directory / "hub.seed")}

    async with reading(store, site.url, **credentials) as consumer:
        await until(lambda: store.events == [outage()], "the event")
        await until(lambda: store.beats, "a heartbeat")
        node.commit(outage("b"))
        await until(lambda: store.events == [outage(), outage("b")], "the next one")
        assert consumer.state.reason == ""
