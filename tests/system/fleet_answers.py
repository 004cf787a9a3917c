"""Fleet answers: a simulated fleet told to a real server, and what a real hub answers by HTTP."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from flapd.fleet_pump import STREAM as KEPT
from flapd.hub import STORE
from flapd.model.consuming import Position
from flapd.model.fleet import NodeEvent, decode_node_event
from flapd.model.incident import Incident
from flapd.model.times import SECOND_NS
from flapd.serve.items import FlapItem
from flapd.serve.job_items import IncidentItem
from simulators.cluster.fleet import Arrival, Fleet
from simulators.cluster.names import topology_lines
from tests.fleet.nats_server import STREAM, NatsServer, client, make_stream, messages
from tests.system.fleet_judge import AFTERWARDS_SECONDS, view_of
from tests.system.fleet_telling import BEATS, Nodes, Told, now_of, some_of, tell_beats
from tests.system.harness import until
from tests.system.running_hub import RunningHub

_SHARP_SECONDS = 0.3
"""So near is a clock known, by some heartbeats."""
_TAKEN = "SELECT body FROM checkpoint WHERE part = ?"


class Answers(NamedTuple):
    incidents: list[IncidentItem]
    flaps: list[FlapItem]
    lost_gpu_seconds: dict[str, float]
    """By regime, as the metric tells it."""


class FleetHub:
    """A real hub on a real server, both for one fleet alone: nothing else can help or hurt it."""

    def __init__(self, fleet: Fleet, directory: Path) -> None:
        """Both run, and the hub knows the clocks of all nodes; to be closed."""
        directory.mkdir(parents=True, exist_ok=True)
        self.fleet = fleet
        self._server = NatsServer(directory / "nats")
        self._server.start()
        topology = directory / "topology.csv"
        topology.write_text("\n".join(topology_lines(fleet.spec)) + "\n")
        told = f'[hub]\ntopology = "{topology}"'
        self.hub = RunningHub(directory / "hub", [self._server.url], told)
        asyncio.run(_prepare(self._server.url))
        self._start()
        self.nodes = Nodes(fleet, self._server.url, directory / "nodes")

    def _start(self) -> None:
        self.hub.start()
        until(self.hub.is_ready, "a ready hub")
        asyncio.run(tell_beats(self._server.url, self.fleet))
        until(self._knows_clocks, "all heartbeats")

    def _knows_clocks(self) -> bool:
        clocks = [one["clock"] for one in self.hub.items("nodes")]
        sharp = [one for one in clocks if one and one["high"] - one["low"] < _SHARP_SECONDS]
        return len(sharp) == self.fleet.spec.nodes

    def kill_and_start(self) -> None:
        self.hub.kill()
        self._start()

    def wait(self) -> None:
        """Until the hub has on its disk what the stream has."""
        last_seq = asyncio.run(_last_seq(self._server.url))
        until(lambda: self._taken_seq() == last_seq, "all of the stream")

    def _taken_seq(self) -> int:
        store = f"file:{self.hub.history.parent / STORE}?mode=ro"
        with closing(sqlite3.connect(store, uri=True)) as reader:
            row = reader.execute(_TAKEN, (KEPT,)).fetchone()
        return 0 if row is None else msgspec.json.decode(row[0], type=Position).seq

    def stored(self) -> list[NodeEvent]:
        """All that the stream has, as often as it has it."""
        return asyncio.run(_stored(self._server.url))

    def answers(self) -> Answers:
        return Answers(
            msgspec.convert(self.hub.items("incidents"), list[IncidentItem]),
            msgspec.convert(self.hub.items("flaps"), list[FlapItem]),
            metric(self.hub, "flapd_gpu_seconds_lost_total"),
        )

    def told_by_core(self) -> list[Incident]:
        """Of the same events, by clocks that are as far off as the hub found them to be."""
        fleet, view = self.fleet, view_of(self.fleet.spec)
        ahead = {one["node"]: one["clock"]["low"] for one in self.hub.items("nodes")}
        for node in [*range(fleet.spec.nodes)] * BEATS:
            beat = fleet.beat(node, now_of(fleet))
            view.beat(beat, beat.sent_unix_ns - round(ahead[beat.node] * SECOND_NS))
        for one in self.stored():
            view.hear(one)
        return view.look(time.time_ns())

    def close(self) -> None:
        self.nodes.close()
        self.hub.kill()
        self._server.kill()


def ended(fleet: Fleet) -> Fleet:
    """The same, so long ago that all of it is over."""
    ago_ns = round((fleet.end + AFTERWARDS_SECONDS) * SECOND_NS)
    return Fleet(replace(fleet.spec, origin_unix_ns=time.time_ns() - ago_ns))


@contextmanager
def heard_fleet(fleet: Fleet, directory: Path, *, is_killed: bool = False) -> Iterator[FleetHub]:
    """A hub that has taken all of it: nodes tell at once, and some of it again.

    `is_killed` is the hub in the middle.
    """
    rng = random.Random(fleet.spec.seed)
    early, late = _halves([fleet.events_of(node) for node in range(fleet.spec.nodes)])
    with closing(FleetHub(fleet, directory)) as heard:
        heard.nodes.tell(early)
        heard.nodes.tell_again(some_of(early, rng))
        if is_killed:
            heard.kill_and_start()
        heard.nodes.tell(late)
        heard.nodes.tell_again(some_of([*early, *late], rng))
        heard.wait()
        yield heard


def _halves(arrivals: Iterable[Sequence[Arrival]]) -> tuple[Told, Told]:
    early, late = [], []
    for of_node in arrivals:
        events = [one.event for one in of_node]
        half = len(events) // 2
        early.append(events[:half])
        late.append(events[half:])
    return early, late


async def _prepare(url: str) -> None:
    connection = await client(url)
    await make_stream(connection)
    await connection.close()


async def _stored(url: str) -> list[NodeEvent]:
    connection = await client(url)
    found = [decode_node_event(message.data) for message in await messages(connection)]
    await connection.close()
    return found


async def _last_seq(url: str) -> int:
    connection = await client(url)
    state = (await connection.jetstream().stream_info(STREAM["name"])).state
    await connection.close()
    return state.last_seq


def metric(hub: RunningHub, name: str) -> dict[str, float]:
    """By the value of its one label."""
    return {
        next(iter(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(hub.get_text("/metrics"))
        for sample in family.samples
        if sample.name == name
    }
