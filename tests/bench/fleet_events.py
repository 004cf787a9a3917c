"""Events of fleets as benchmarks need them: many, and as messages."""

import asyncio
import time
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace
from nats.aio.client import Client

from flapd.model.event import Event
from flapd.model.fault import Fault
from flapd.model.fleet import FLEET_VERSION, NodeEvent
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS, Edge
from simulators.cluster.fleet import Fleet
from simulators.cluster.message import Message, beat_message, event_message
from simulators.cluster.names import node_name, port_key, port_name
from simulators.cluster.spec import FleetSpec, PlacedJob, SwitchDown
from simulators.job.spec import JobSpec, Software
from tests.store.outages import outage

_STEADY_NODES = 12_500
_STRIDE = 7919
"""So that each node tells of everything."""
_JOB_NODES = 128
_AT = 420.0
_RAILS = 8
_EVENTS_A_JOB = 200
_DYING = range(2, 6)
_SHARES = ("flap",) * 5 + ("fault",) * 3 + ("stall",) * 2
_EVERY_NS = 3 * SECOND_NS // 10
"""200,000 of them are what a hub finds that was away for most of a day."""
_FOREVER = float("inf")


def steady(events: int) -> Iterator[Message]:
    """Half outages, three tenths faults, two tenths stalls, all new, of 12,500 nodes."""
    now_ns = time.time_ns()
    for number in range(events):
        node = number * _STRIDE % _STEADY_NODES
        at_ns = now_ns - (events - number) * _EVERY_NS
        yield _message(node_name(node), number, _event(number, node, at_ns))


def _event(number: int, place: int, at_ns: int) -> Event:
    kind, name, node = _SHARES[number // 7 % 10], f"{number:016x}", node_name(place)
    if kind == "flap":
        key, port = port_key(place, number % _RAILS), port_name(number % _RAILS)
        down, up = Edge(0, SECOND_NS // 10, at_ns), Edge(2 * SECOND_NS, 3 * SECOND_NS, at_ns)
        found = outage(f"flap-{name}", node=node, key=key, port=port)
        return replace(found, down=down, up=up)
    if kind == "fault":
        return Fault(
            id=f"fault-{name}",
            revision=1,
            kind="transport_error",
            form="completion",
            text="NET/IB: Got completion from peer 10.0.0.1<53249> with status=12",
            time_ns=at_ns,
            clock_error_ns=SECOND_NS,
            node=node,
            job=f"job{number // _EVENTS_A_JOB}",
            primary=True,
            rank=number % 1024,
            host=node,
        )
    return Stall(
        id=f"stall-{name}",
        revision=1,
        node=node,
        job=f"job{number // _EVENTS_A_JOB}",
        begin_ns=0,
        end_ns=3 * SECOND_NS,
        resolution_ns=SECOND_NS // 10,
        stall_class="unknown",
        ports=(port_key(place, 0),),
        expected_seconds=0.0,
        wall_offset_ns=at_ns,
    )


def _message(node: str, seq: int, event: Event) -> Message:
    return event_message(NodeEvent(FLEET_VERSION, "default", node, seq, event))


def burst(nodes: int) -> Iterator[Message]:
    """Of a fleet full of jobs under which a switch of four rails dies, node by node."""
    rails = (
        SwitchDown(at_seconds=_AT, down_seconds=150.0, switch=f"spine-{rail}") for rail in _DYING
    )
    found = _fleet(nodes, *rails)
    for node in range(nodes):
        yield from (event_message(one.event) for one in found.events_of(node))


def _fleet(nodes: int, *happenings: SwitchDown) -> Fleet:
    each = min(_JOB_NODES, nodes)
    # Such a release names no process group, so every rank's error is one of its own.
    software = Software(torch="2.2.0", nccl="2.18.6")
    jobs = tuple(
        PlacedJob(
            JobSpec(
                seed=number,
                job=str(4711 + number),
                nodes=each,
                restarts=0,
                duration_seconds=_AT + 200.0,
                software=software,
            ),
            first_node=each * number,
        )
        for number in range(nodes // each)
    )
    return Fleet(
        FleetSpec(
            nodes=nodes,
            origin_unix_ns=time.time_ns() - 1800 * SECOND_NS,
            largest_skew_seconds=0.1,
            jobs=jobs,
            happenings=happenings,
        )
    )


class Heartbeating(NamedTuple):
    """A quiet fleet: its jobs were told, and every node says every 30 s that it is well."""

    fleet: Fleet

    @property
    def jobs(self) -> Iterator[Message]:
        return (event_message(one.event) for one in self.fleet.events())

    async def play(self, connection: Client) -> None:
        """For ever."""
        begin = time.monotonic()
        age = time.time_ns() - self.fleet.spec.origin_unix_ns
        for at, beat in self.fleet.beats(age / SECOND_NS, _FOREVER):
            await asyncio.sleep(max(0.0, at - age / SECOND_NS - (time.monotonic() - begin)))
            message = beat_message(beat)
            await connection.publish(message.subject, message.body)


def heartbeating(nodes: int) -> Heartbeating:
    return Heartbeating(_fleet(nodes))


def flap_of(number: int, nodes: int) -> tuple[str, Message]:
    """The id of an outage of a port that a job uses, just now, and how it is told.

    Each is of another job.
    """
    node = number * (_JOB_NODES + 1) % nodes
    name, down = f"flap-now-{number}", Edge(0, SECOND_NS // 10, time.time_ns())
    found = outage(name, up=None, node=node_name(node), key=port_key(node, 2), port=port_name(2))
    told = replace(found, down=down)
    return name, _message(node_name(node), 1_000_000 + number, told)
