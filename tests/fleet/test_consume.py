"""A consumer and a real NATS server: all of the stream is taken once, in its order, or is told."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from itertools import repeat
from pathlib import Path

import pytest
from nats.aio.client import Client

from flapd.core.fabric.view import Snapshot
from flapd.fleet.beat import Vitals, heartbeat
from flapd.fleet.consume import Consumer
from flapd.fleet.pull import MESSAGES_AT_ONCE
from flapd.fleet.settings import FleetSettings
from flapd.fleet.subjects import event_subject, heartbeat_subject
from flapd.model.consuming import Position
from flapd.model.event import Event
from flapd.model.fleet import FLEET_VERSION, Heartbeat, NodeEvent, decode_node_event, encode
from tests.fleet.nats_server import STREAM, NatsServer, client, make_stream, settled
from tests.fleet.test_publish import until
from tests.store.jobs import fault, incident, job, stall
from tests.store.outages import outage

NODE = "node17"
VITALS = Vitals(Snapshot(boot="boot-1"), (), None, 5, 6)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    found = NatsServer(tmp_path / "nats")
    found.start()
    yield found
    found.kill()


@pytest.fixture
async def teller(server: NatsServer) -> AsyncIterator[Client]:
    connection = await client(server.url)
    await make_stream(connection)
    yield connection
    await connection.close()


class Store:
    """Takes what it is given, unless its disk is full; goes on from where it was."""

    def __init__(self) -> None:
        self.taken: list[NodeEvent] = []
        self.position = Position()
        self.is_at_end = False
        self.beats: list[Heartbeat] = []
        self.held: list[Future[None]] | None = None
        """Of batches that a full disk does not take yet; None: there is room."""

    @property
    def events(self) -> list[Event]:
        return [told.event for told in self.taken]

    def take(self, events: Sequence[NodeEvent], position: Position, is_end: bool) -> "Future[None]":
        self.is_at_end = is_end
        self.taken += events
        self.position = position
        done: Future[None] = Future()
        if self.held is None:
            done.set_result(None)
        else:
            self.held.append(done)
        return done


@asynccontextmanager
async def reading(store: Store, *servers: str, **settings: str) -> AsyncIterator[Consumer]:
    consumer = Consumer(
        FleetSettings(servers, **settings),
        "hub1",
        store.position,
        store.take,
        store.beats.append,
        pauses=lambda: repeat(0.05),
    )
    consumer.start()
    try:
        yield consumer
    finally:
        assert await asyncio.to_thread(consumer.stop, 5)


def flaps(count: int) -> list[Event]:
    return [outage(f"flap-{number}") for number in range(count)]


async def tell(
    connection: Client, events: Iterable[Event], node: str = NODE, cluster: str = "default"
) -> None:
    """As the node's agent does, but for the acknowledgements."""
    for event in events:
        told = NodeEvent(FLEET_VERSION, cluster, node, 1, event)
        subject = event_subject(cluster, node, told.kind)
        await connection.publish(subject, encode(told), headers={"Nats-Msg-Id": told.message_id})
    await settled(connection)


async def test_every_event_is_taken_in_the_order_of_the_stream(
    server: NatsServer, teller: Client
) -> None:
    events: list[Event] = [outage(), fault(), stall(), job(), incident(), outage("a", 2)]
    await tell(teller, events[:3])
    store = Store()

    async with reading(store, server.url) as consumer:
        await until(lambda: store.events == events[:3], "what was there")
        await tell(teller, events[3:])
        await until(lambda: store.events == events, "what came then")
        await until(lambda: consumer.state.waiting == 0, "the end of the stream")

    assert store.position.seq == len(events)
    assert consumer.state.events == {"flap": 2, "fault": 1, "stall": 1, "job": 1, "incident": 1}
    assert consumer.state.missed == consumer.state.refused == 0


async def test_more_than_comes_at_once_is_taken_piece_by_piece(
    server: NatsServer, teller: Client
) -> None:
    events = flaps(2 * MESSAGES_AT_ONCE + 500)
    await tell(teller, events)
    store = Store()

    async with reading(store, server.url):
        await until(lambda: store.position.seq == len(events), "all of it")

    assert store.events == events
    assert store.is_at_end


async def test_a_new_start_goes_on_behind_what_was_taken(
    server: NatsServer, teller: Client
) -> None:
    events = flaps(9)
    await tell(teller, events[:5])
    store = Store()
    async with reading(store, server.url):
        await until(lambda: len(store.taken) == 5, "the first five")
    await tell(teller, events[5:])

    async with reading(store, server.url):
        await until(lambda: len(store.taken) == 9, "the others")

    assert store.events == events


async def test_it_goes_on_when_the_server_comes_back(server: NatsServer, teller: Client) -> None:
    events = flaps(8)
    await tell(teller, events[:4])
    store = Store()

    async with reading(store, server.url) as consumer:
        await until(lambda: len(store.taken) == 4, "the first four")
        server.kill()
        await until(lambda: not consumer.state.connected, "a lost connection")
        assert consumer.state.reason
        server.start()
        again = await client(server.url)
        await tell(again, events[4:])
        await until(lambda: len(store.taken) == 8, "the others")
        await again.close()

    assert store.events == events


async def test_what_the_disk_has_not_taken_holds_up_what_comes_after_it(
    server: NatsServer, teller: Client
) -> None:
    """And is read again after a restart: the stream has it, and memory is bounded."""
    events = flaps(3)
    await tell(teller, events[:1])
    store = Store()
    store.held = []

    async with reading(store, server.url) as consumer:
        await until(lambda: store.held, "a batch that the disk does not take")
        await tell(teller, events[1:])
        assert consumer.state.events == {}
        held, store.held = store.held, None
        held[0].set_result(None)
        await until(lambda: len(store.taken) == 3, "the others")

    assert store.events == events


async def test_what_the_stream_let_go_of_is_told(server: NatsServer) -> None:
    connection = await client(server.url)
    await make_stream(connection, max_msgs=4)
    events = flaps(12)
    await tell(connection, events[:3])
    store = Store()
    async with reading(store, server.url):
        await until(lambda: len(store.taken) == 3, "the first three")
    await tell(connection, events[3:])

    async with reading(store, server.url) as consumer:
        await until(lambda: store.position.seq == 12, "the end of the stream")

    assert store.events == [*events[:3], *events[8:]]
    assert consumer.state.missed == 5
    await connection.close()


async def test_a_new_hub_misses_nothing_that_it_could_have_had(server: NatsServer) -> None:
    connection = await client(server.url)
    await make_stream(connection, max_msgs=4)
    await tell(connection, flaps(12))
    store = Store()

    async with reading(store, server.url) as consumer:
        await until(lambda: store.position.seq == 12, "the end of the stream")

    assert store.events == flaps(12)[8:]
    assert consumer.state.missed == 0
    await connection.close()


async def test_a_stream_that_was_made_anew_is_read_from_its_beginning(
    server: NatsServer, teller: Client
) -> None:
    await tell(teller, flaps(5))
    store = Store()
    async with reading(store, server.url):
        await until(lambda: len(store.taken) == 5, "the first stream")
    await teller.jetstream().delete_stream(STREAM["name"])
    await make_stream(teller)
    await tell(teller, [outage("new", 7), *flaps(1)])

    async with reading(store, server.url) as consumer:
        await until(lambda: len(store.taken) == 7, "the new stream")

    assert store.events[5:] == [outage("new", 7), *flaps(1)]
    assert store.position.seq == 2
    assert consumer.state.missed == 0


async def test_what_is_not_of_the_node_under_whose_name_it_came_is_refused(
    server: NatsServer, teller: Client
) -> None:
    good = outage("good")
    other = outage("other", node="node18")
    told = NodeEvent(FLEET_VERSION, "default", "node18", 1, other)
    newer = encode(NodeEvent(FLEET_VERSION + 1, "default", NODE, 1, good))
    subject = event_subject("default", NODE, "flap")
    for body in (encode(told), b"\xc1 no MessagePack", newer):
        await teller.publish(subject, body)
    await tell(teller, [outage("inside", node="node18"), incident(nodes=(NODE, "node18"))])
    await tell(teller, [good])
    store = Store()

    async with reading(store, server.url) as consumer:
        await until(lambda: store.position.seq == 6, "all of it")

    assert store.events == [good]
    assert consumer.state.refused == 5


async def test_a_message_that_fails_by_a_fault_of_ours_is_left_out_alone(
    server: NatsServer, teller: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_with_poison(body: bytes) -> NodeEvent:
        told = decode_node_event(body)
        if told.event.id == "poison":
            raise RuntimeError(told.event.id)
        return told

    monkeypatch.setattr("flapd.fleet.consume.decode_node_event", fails_with_poison)
    await tell(teller, [outage("a"), outage("poison"), outage("b")])
    store = Store()

    async with reading(store, server.url) as consumer:
        await until(lambda: store.position.seq == 3, "all of it")

    assert store.events == [outage("a"), outage("b")]
    assert consumer.state.refused == 1


async def test_another_cluster_of_the_same_stream_is_left_out(
    server: NatsServer, teller: Client
) -> None:
    await tell(teller, [outage("theirs")], cluster="other")
    await tell(teller, [outage("ours")])
    store = Store()

    async with reading(store, server.url) as consumer:
        await until(lambda: store.position.seq == 2, "all of it")

    assert store.events == [outage("ours")]
    assert consumer.state.refused == consumer.state.missed == 0


async def test_it_says_that_there_is_no_stream_and_begins_when_there_is_one(
    server: NatsServer,
) -> None:
    store = Store()
    connection = await client(server.url)

    async with reading(store, server.url) as consumer:
        await until(lambda: "no stream takes" in consumer.state.reason, "the reason")
        await make_stream(connection)
        await tell(connection, [outage()])
        await until(lambda: store.events == [outage()], "the first event")
        assert consumer.state.reason == ""

    await connection.close()


async def test_heartbeats_are_heard_of_the_own_cluster(server: NatsServer, teller: Client) -> None:
    store = Store()

    def beat(node: str, cluster: str = "default") -> Heartbeat:
        return heartbeat(FleetSettings(cluster=cluster), node, VITALS, 3, 2)

    async with reading(store, server.url):

        async def beat_on() -> None:
            while True:
                for subject, told in (
                    (heartbeat_subject("default", NODE), beat(NODE)),
                    (heartbeat_subject("default", NODE), beat("node18")),
                    (heartbeat_subject("other", NODE), beat(NODE, "other")),
                ):
                    await teller.publish(subject, encode(told))
                await asyncio.sleep(0.05)

        beating = asyncio.create_task(beat_on())
        await until(lambda: len(store.beats) > 2, "heartbeats")
        beating.cancel()

    assert {told.node for told in store.beats} == {NODE}
    assert {told.cluster for told in store.beats} == {"default"}
