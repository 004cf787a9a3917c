"""Fleet telling: what each node of a simulated fleet tells a real server, by the agent's own code.

Nodes of a small fleet have a journal each, the outbox on it and the thread that publishes it;
those of a larger one share a connection, each with one event under way, as agents send theirs.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from flapd.core.fabric.view import Snapshot
from flapd.fleet.beat import Vitals
from flapd.fleet.connection import Connection, connect
from flapd.fleet.settings import FleetSettings
from flapd.fleet.subjects import event_subject
from flapd.model.fleet import NodeEvent, encode
from flapd.model.times import SECOND_NS
from simulators.cluster.fleet import Fleet
from simulators.cluster.names import node_name
from tests.fleet.telling import Telling, telling
from tests.system.harness import until

BEATS = 3
"""Of each node: so many tell how far its clock is off."""
DOUBLED = 0.1
"""Of all messages; they come again where the stream does not know them any more."""
_MOST_WITH_JOURNALS = 8

Told = Sequence[Sequence[NodeEvent]]
"""By node, each in the order of its journal."""


def now_of(fleet: Fleet) -> float:
    """Seconds from the fleet's origin."""
    return (time.time_ns() - fleet.spec.origin_unix_ns) / SECOND_NS


@asynccontextmanager
async def _connected(url: str, fleet: Fleet) -> AsyncIterator[Connection]:
    connection = await connect(FleetSettings((url,), fleet.spec.cluster), "all of them")
    try:
        yield connection
    finally:
        await connection.close()


async def tell_beats(url: str, fleet: Fleet) -> None:
    async with _connected(url, fleet) as connection:
        for _ in range(BEATS):
            for node in range(fleet.spec.nodes):
                await connection.beat(fleet.beat(node, now_of(fleet)))


class Nodes:
    """All nodes of a fleet, and whatever carries what they tell."""

    def __init__(self, fleet: Fleet, url: str, directory: Path) -> None:
        self._fleet, self._url = fleet, url
        self._journals: list[Telling] = []
        self._stack = ExitStack()
        if fleet.spec.nodes <= _MOST_WITH_JOURNALS:
            self._journals = [self._journal(directory, node) for node in range(fleet.spec.nodes)]

    def _journal(self, directory: Path, node: int) -> Telling:
        own = directory / node_name(node)
        own.mkdir(parents=True)
        found = self._stack.enter_context(
            telling(own, node_name(node), partial(_vitals, self._fleet, node))
        )
        found.publish(self._url, cluster=self._fleet.spec.cluster)
        return found

    def close(self) -> None:
        self._stack.close()

    def tell(self, told: Told) -> None:
        """All nodes at once; returns when the stream has it."""
        if not self._journals:
            asyncio.run(self._tell_by_connection(told))
            return
        for journal, events in zip(self._journals, told, strict=True):
            journal.commit(*(one.event for one in events))
        until(lambda: all(map(_is_told, self._journals)), "what the nodes tell")

    async def _tell_by_connection(self, told: Told) -> None:
        async with _connected(self._url, self._fleet) as connection:
            await asyncio.gather(*(_tell_one_by_one(connection, events) for events in told))

    def tell_again(self, told: Iterable[NodeEvent]) -> None:
        """As after a journal was lost, and later than the stream remembers what it had."""
        asyncio.run(self._tell_again(told))

    async def _tell_again(self, told: Iterable[NodeEvent]) -> None:
        async with _connected(self._url, self._fleet) as connection:
            for one in told:
                await connection.client.jetstream().publish(
                    event_subject(one.cluster, one.node, one.kind),
                    encode(one),
                    headers={"Nats-Msg-Id": f"{one.message_id} of {one.node} again"},
                )


def _vitals(fleet: Fleet, node: int) -> Vitals:
    beat = fleet.beat(node, now_of(fleet))
    boot = Snapshot(boot=beat.boot)
    return Vitals(boot, (), beat.clock, beat.sent_unix_ns, beat.sent_monotonic_ns)


async def _tell_one_by_one(connection: Connection, events: Iterable[NodeEvent]) -> None:
    for one in events:
        await connection.publish(one)


def _is_told(journal: Telling) -> bool:
    state = journal.state()
    return state.connected and not state.reason and state.outbox_events == 0


def some_of(told: Told, rng: random.Random) -> list[NodeEvent]:
    """In no order."""
    events = [one for events in told for one in events]
    return rng.sample(events, round(DOUBLED * len(events)))
