"""A publisher and a real NATS server that comes, goes, and says no."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from flapd.fleet.subjects import event_subject
from flapd.model.event import Event
from flapd.model.fleet import NodeEvent, decode_heartbeat, decode_node_event
from tests.fleet.nats_server import (
    PATIENCE_SECONDS,
    NatsServer,
    client,
    make_stream,
    messages,
    settled,
)
from tests.fleet.telling import NODE, Telling, telling
from tests.store.jobs import fault, incident, job, stall
from tests.store.outages import outage


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    found = NatsServer(tmp_path / "nats")
    found.start()
    yield found
    found.kill()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Telling]:
    with telling(tmp_path) as found:
        yield found


@pytest.fixture
async def reader(server: NatsServer) -> AsyncIterator[Client]:
    connection = await client(server.url)
    yield connection
    await connection.close()


async def until(condition: Callable[[], object], what: str) -> None:
    async def asked() -> None:
        while not condition():  # noqa: ASYNC110 - another thread, which sets no event
            await asyncio.sleep(0.01)

    try:
        await asyncio.wait_for(asked(), PATIENCE_SECONDS)
    except asyncio.TimeoutError:
        raise AssertionError(f"{what} did not come") from None


def is_told(node: Telling) -> bool:
    state = node.state()
    return state.connected and not state.reason and state.outbox_events == 0


async def kept(connection: Client) -> list[NodeEvent]:
    return [decode_node_event(message.data) for message in await messages(connection)]


async def test_every_event_is_told_in_order_under_its_own_subject(
    server: NatsServer, node: Telling, reader: Client
) -> None:
    await make_stream(reader)
    events: list[Event] = [
        outage(),
        fault(primary=True),
        stall(),
        job(),
        incident(),
        outage("a", 2),
    ]
    node.commit(*events[:3])

    node.publish(server.url)
    node.commit(*events[3:])
    await until(lambda: is_told(node), "all of it")

    found = await kept(reader)
    assert [one.event for one in found] == events
    assert [(one.cluster, one.node, one.seq) for one in found] == [
        ("default", NODE, number) for number in range(1, 7)
    ]
    assert [message.subject for message in await messages(reader)] == [
        event_subject("default", NODE, kind)
        for kind in ("flap", "fault", "stall", "job", "incident", "flap")
    ]
    assert node.state().events_published == 6


async def test_what_is_told_twice_is_kept_once(
    server: NatsServer, node: Telling, reader: Client
) -> None:
    """As after a kill between the acknowledgement and the cursor."""
    await make_stream(reader)
    node.commit(outage("a"), outage("b"))
    node.publish(server.url)
    await until(lambda: is_told(node), "all of it")
    node.stop_publishing()
    node.keep(b"0").result()

    node.commit(outage("c"))
    node.publish(server.url)
    await until(lambda: is_told(node), "all of it again")

    assert [one.event.id for one in await kept(reader)] == ["a", "b", "c"]


async def test_what_happens_without_a_server_is_told_when_it_is_back(
    server: NatsServer, node: Telling, reader: Client
) -> None:
    await make_stream(reader)
    node.publish(server.url)
    await until(lambda: is_told(node), "a connection")
    server.kill()
    await until(lambda: not node.state().connected, "the end of the connection")
    node.commit(*(outage(f"flap-{number}") for number in range(250)))
    await until(lambda: node.state().outbox_events == 250, "a full outbox")
    assert node.state().reason.startswith(f"{server.url}: ")

    server.start()
    await until(lambda: is_told(node), "all of it")

    after = await client(server.url)
    assert [one.event.id for one in await kept(after)] == [f"flap-{n}" for n in range(250)]
    await after.close()


async def test_without_a_stream_events_wait_and_the_state_says_why(
    server: NatsServer, node: Telling, reader: Client
) -> None:
    node.commit(outage())
    node.publish(server.url)
    await until(lambda: "no stream takes" in node.state().reason, "the reason")
    assert (node.state().connected, node.state().outbox_events) == (True, 1)

    await make_stream(reader)
    await until(lambda: is_told(node), "all of it")


async def test_what_a_full_stream_refuses_waits_and_nothing_overtakes_it(
    server: NatsServer, node: Telling, reader: Client
) -> None:
    await make_stream(reader, max_msgs=2, discard="new")
    node.commit(*(outage(name) for name in "abc"))

    node.publish(server.url)
    await until(lambda: "maximum messages exceeded" in node.state().reason, "the reason")

    assert [one.event.id for one in await kept(reader)] == ["a", "b"]
    assert node.state().outbox_events == 1


async def test_a_message_that_no_server_takes_is_counted_lost_and_holds_up_nothing(
    node: Telling, tmp_path: Path
) -> None:
    server = NatsServer(tmp_path / "small", "max_payload: 4096")
    server.start()
    reader = await client(server.url)
    await make_stream(reader, max_msg_size=4096)
    node.commit(outage("a"), outage("b", evidence=("x" * 5000,)), outage("c"))

    node.publish(server.url)
    await until(lambda: is_told(node), "all of it")

    assert [one.event.id for one in await kept(reader)] == ["a", "c"]
    assert node.state().events_lost == 1
    await reader.close()
    server.kill()


async def test_what_was_told_under_another_name_is_counted_not_told_and_said(
    server: NatsServer,
    node: Telling,
    reader: Client,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The hub would refuse it: a node tells under its own name alone."""
    await make_stream(reader)
    former = [outage(name, node="gpu-old") for name in "ab"]
    node.commit(*former, outage("c"))

    node.publish(server.url)
    await until(lambda: is_told(node), "what is left")

    assert [one.event.id for one in await kept(reader)] == ["c"]
    assert node.state().events_lost == 2
    await until(lambda: "gpu-old" in capsys.readouterr().out, "what is said")


async def test_a_server_that_hangs_holds_up_nobody_and_has_everything_once_in_the_end(
    server: NatsServer, node: Telling, reader: Client
) -> None:
    """What it had taken without an answer is told again."""
    await make_stream(reader)
    node.publish(server.url)
    await until(lambda: is_told(node), "a connection")
    server.signal(signal.SIGSTOP)
    node.commit(outage("a"), outage("b"))
    await until(lambda: "timeout" in node.state().reason, "the reason")
    assert node.state().outbox_events == 2

    server.signal(signal.SIGCONT)
    await until(lambda: is_told(node), "all of it")

    assert [one.event.id for one in await kept(reader)] == ["a", "b"]


async def test_an_answer_that_is_no_acknowledgement_is_none(
    server: NatsServer, node: Telling, reader: Client
) -> None:
    """It came from somebody else, who listens where the stream should."""

    async def answer(message: Msg) -> None:
        await message.respond(b"\x00 nonsense")

    listening = await reader.subscribe("flapd.>", cb=answer)
    await settled(reader)
    node.commit(outage())
    node.publish(server.url)
    await until(lambda: "told in the log" in node.state().reason, "the reason")
    assert node.state().outbox_events == 1

    await listening.unsubscribe()
    await make_stream(reader)
    await until(lambda: is_told(node), "all of it")


async def test_any_server_of_several_will_do(
    server: NatsServer, node: Telling, reader: Client
) -> None:
    await make_stream(reader)
    node.commit(outage())

    node.publish("nats://127.0.0.1:1", server.url, "nats://127.0.0.1:2")
    await until(lambda: is_told(node), "all of it")

    assert node.state().server == server.url


async def test_a_server_that_speaks_no_tls_is_told_nothing_where_tls_is_asked_for(
    server: NatsServer, node: Telling, reader: Client
) -> None:
    await make_stream(reader)
    node.commit(outage())

    node.publish(server.url.replace("nats:", "tls:"))
    await until(lambda: "TLS" in node.state().reason, "the reason")

    assert await kept(reader) == []


async def test_a_node_says_again_and_again_that_it_lives(
    server: NatsServer, node: Telling, reader: Client
) -> None:
    await make_stream(reader)
    heard = await reader.subscribe("flapd-heartbeat.>")
    await settled(reader)
    node.commit(outage(), outage("b"))
    node.publish(server.url)
    await until(lambda: is_told(node), "all of it")

    first, second = [await heard.next_msg(PATIENCE_SECONDS) for _ in range(2)]

    assert first.subject == second.subject == f"flapd-heartbeat.default.{NODE}"
    beat = decode_heartbeat(second.data)
    assert (beat.node, beat.boot, beat.not_ready, beat.last_seq) == (NODE, "boot-1", ("why",), 2)
    assert len(await kept(reader)) == 2


async def test_it_ends_at_once_while_a_server_does_not_answer(node: Telling) -> None:
    """It says what it is, and then nothing any more."""
    greeted = asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id": "silent"}\r\n')
        assert (await reader.readline()).startswith(b"CONNECT")
        greeted.set()
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    publisher = node.publish(f"nats://127.0.0.1:{port}")
    await asyncio.wait_for(greeted.wait(), PATIENCE_SECONDS)

    assert await asyncio.to_thread(publisher.stop, PATIENCE_SECONDS)

    silent.close()
