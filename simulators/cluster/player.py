"""Player: tells a server what the nodes of a fleet would, each event at its time."""

import asyncio
import heapq
import time
from collections.abc import Collection, Iterator
from typing import NamedTuple

import nats
from nats.errors import Error as NatsError

from flapd.model.times import SECOND_NS
from simulators.cluster.feeder import Feeder
from simulators.cluster.fleet import Fleet
from simulators.cluster.message import Message, beat_message, event_message
from simulators.cluster.names import node_name
from simulators.errors import SimulatorError

_FOREVER = float("inf")


class Due(NamedTuple):
    at: float
    message: Message


def due(fleet: Fleet, left_out: Collection[int] = ()) -> Iterator[Due]:
    """Events and heartbeats in order of time, without end: nodes go on beating."""
    names = {node_name(node) for node in left_out}
    events = (
        Due(one.at, event_message(one.event))
        for one in fleet.events()
        if one.event.node not in names
    )
    beats = (
        Due(one.at, beat_message(one.beat))
        for one in fleet.beats(0.0, _FOREVER)
        if one.beat.node not in names
    )
    return heapq.merge(events, beats, key=lambda one: one.at)


async def play(fleet: Fleet, url: str, origin_ns: int, left_out: Collection[int] = ()) -> None:
    """Second 0 of the fleet is `origin_ns` (monotonic); ends by being cancelled alone."""
    try:
        connection = await nats.connect(url, allow_reconnect=False, error_cb=_ignore)
    except (OSError, NatsError) as error:
        raise SimulatorError(f"{url} cannot be told: {error}") from error
    feeder = Feeder(connection)
    await feeder.start()
    try:
        for one in due(fleet, left_out):
            late_ns = time.monotonic_ns() - origin_ns - round(one.at * SECOND_NS)
            await asyncio.sleep(max(0.0, -late_ns / SECOND_NS))
            if one.message.id is None:
                await connection.publish(one.message.subject, one.message.body)
            else:
                await feeder.put(one.message)
    finally:
        await connection.close()


async def _ignore(_error: Exception) -> None:
    """It is raised as well; the library would print a stack trace."""
