"""The main path with every real part: port, sampler, engine, history, HTTP, recording."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flapd.cli.replay import Replay
from flapd.model.event import Event, Outage
from flapd.model.observation import READ_STATE, READ_WITNESS
from flapd.model.times import SECOND_NS, Edge
from flapd.store.history_reader import HistoryReader
from flapd.store.ring import read_ring, ring_files
from simulators.fabric.mount import fuse_missing
from simulators.fabric.schedule import random_flaps
from simulators.fabric.spec import Fault, two_ports
from simulators.fabric.truth import Truth
from tests.system.harness import ROOT, SimulatedNode, is_alive, simulated_fabric, until

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

OUTAGES_A_PORT = 10
PORTS = ("mlx5_0/1", "mlx5_1/1")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    node = SimulatedNode(tmp_path, "[flap]\nmerge_within = 0")
    yield node
    if node.agent is not None and node.agent.poll() is None:
        node.kill()


def outages_of(node: SimulatedNode) -> list[Outage]:
    """What the history holds, read past everything that serves it."""
    with closing(sqlite3.connect(f"file:{node.history}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT body FROM flaps ORDER BY down_unix_ns").fetchall()
    return [msgspec.json.decode(body, type=Outage) for (body,) in rows]


def wait_for(monotonic_ns: int) -> None:
    """Until the simulated fabric's schedule has come to this moment."""
    time.sleep(max(0, monotonic_ns - time.monotonic_ns()) / SECOND_NS)


def readings_of(node: SimulatedNode, key: str, flag: int) -> list[tuple[int, int]]:
    """Stamps of every read that the ring remembers, in order."""
    return sorted(
        (row.before_ns, row.after_ns)
        for path in ring_files(node.directory / "ring")
        if (ring := read_ring(path)).key == key
        for row in ring.rows()
        if row.reads & flag
    )


def is_made_of_adjacent_reads(node: SimulatedNode, key: str, edge: Edge) -> bool:
    """Its ends are the stamps of two reads with none in between: of the witness, or the state."""
    for flag in (READ_WITNESS, READ_STATE, READ_WITNESS | READ_STATE):
        readings = readings_of(node, key, flag)
        begins = [before for before, _ in readings]
        if edge.earliest_ns in begins:
            following = readings[begins.index(edge.earliest_ns) + 1]
            if following[1] == edge.latest_ns:
                return True
    return False


@contextmanager
def recording_into(node: SimulatedNode, copy: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """`flapd record`, once it has begun."""
    command = [sys.executable, "-m", "flapd", "record", "-o", str(copy), "--for", "10m"]
    command += ["--config", str(node.config)]
    with subprocess.Popen(command, cwd=ROOT) as recording:
        try:
            until(lambda: copy.exists() and copy.stat().st_size, "a recording")
            yield recording
        finally:
            recording.kill()


def check_against_truth(node: SimulatedNode, truth: Truth, outages: list[Outage]) -> None:
    assert len({outage.id for outage in outages}) == len(outages)
    for port in PORTS:
        true = [outage for outage in truth.outages if outage.port == port]
        found = [outage for outage in outages if outage.port == port]
        assert sum(outage.count for outage in found) == len(true) == OUTAGES_A_PORT
        remaining = iter(true)
        for outage in found:
            holds = [next(remaining) for _ in range(outage.count)]
            assert outage.up is not None
            assert outage.down.earliest_ns <= holds[0].down_monotonic_ns <= outage.down.latest_ns
            assert outage.up.earliest_ns <= holds[-1].up_monotonic_ns <= outage.up.latest_ns
            if port == PORTS[1]:  # the counter of an InfiniBand port may lag
                assert is_made_of_adjacent_reads(node, outage.key, outage.down)
                assert is_made_of_adjacent_reads(node, outage.key, outage.up)


def test_ten_outages_on_each_port_are_recorded_once_although_agent_and_sampler_are_killed(
    node: SimulatedNode,
) -> None:
    flaps = [
        random_flaps(
            seed=seed,
            count=OUTAGES_A_PORT,
            shortest_seconds=0.02,
            longest_seconds=2.0,
            begin_seconds=0.5,
            gap_seconds=0.4,
        )
        for seed in (11, 12)
    ]
    copy = node.directory / "copy.rec"
    fabric = simulated_fabric(node, two_ports(*flaps), origin_in_seconds=6.0)
    with fabric as truth, ExitStack() as recorders:
        node.start()
        until(node.is_ready, "a ready agent")
        recording = recorders.enter_context(recording_into(node, copy))
        first = truth.outages[OUTAGES_A_PORT // 2]
        wait_for((first.down_monotonic_ns + first.up_monotonic_ns) // 2)
        node.kill()
        node.start()
        until(node.is_ready, "a ready agent after SIGKILL")

        second = truth.outages[-OUTAGES_A_PORT // 2]
        wait_for(second.down_monotonic_ns)
        sampler = node.sampler_pid()
        os.kill(sampler, signal.SIGKILL)
        until(lambda: node.sampler_pid() != sampler, "another sampler")

        wait_for(truth.outages[-1].up_monotonic_ns + SECOND_NS)
        until(
            lambda: all(flap["status"] == "closed" for flap in node.get("/api/v1/flaps")["items"]),
            "the end of the last outage",
        )
        for port in PORTS:
            until(partial(all_counted, node, port), f"all downs of {port} in /metrics")
        served = node.get("/api/v1/flaps?limit=1000")["items"]
        recording.send_signal(signal.SIGINT)
        assert recording.wait(20) == 0
        assert node.terminate() < 5
        assert node.agent is not None
        assert node.agent.returncode == 0

    outages = outages_of(node)
    check_against_truth(node, truth, outages)
    assert {flap["id"] for flap in served} == {outage.id for outage in outages}
    replayed = node.flapd("replay", str(copy), "--json")
    assert replayed.returncode == 0, replayed.stderr
    assert in_order(msgspec.json.decode(replayed.stdout)["items"]) == in_order(served)
    assert all_revisions(Replay(copy).events()) == all_revisions(journal_of(node))


def all_counted(node: SimulatedNode, port: str) -> bool:
    device, number = port.split("/")
    series = f'flapd_link_downs_total{{cause="link",device="{device}",port="{number}"}}'
    return f"{series} {float(OUTAGES_A_PORT)}" in node.get_text("/metrics")


def journal_of(node: SimulatedNode) -> list[Event]:
    """Without what was told before the recording began: which ports there are."""
    with closing(HistoryReader(node.history)) as reader:
        events = [event for _, event in reader.events_after(0, 10_000)]
    return [event for event in events if getattr(event, "change", "") != "found"]


def all_revisions(events: Iterable[Event]) -> dict[tuple[str, int], Event]:
    """Of what was told again after the agent was killed, the last is what was kept."""
    return {(event.id, event.revision): event for event in events}


def in_order(flaps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A recording has no black boxes."""
    return sorted(({**flap, "black_box": None} for flap in flaps), key=lambda flap: flap["id"])


def test_it_ends_within_five_seconds_although_a_read_hangs(node: SimulatedNode) -> None:
    hang = Fault("*/mlx5_0/ports/1/state", "hang", begin_seconds=0.5, end_seconds=20.0)
    spec = msgspec.structs.replace(two_ports(), faults=(hang,))
    with simulated_fabric(node, spec, origin_in_seconds=2.0):
        node.start()
        until(node.is_ready, "a ready agent")
        until(
            lambda: "waits" in node.get("/api/v1/ports")["items"][0]["sources"]["sysfs"],
            "a report of the hanging read",
        )
        other = node.get("/api/v1/ports")["items"][1]
        sampler = node.sampler_pid()

        assert node.terminate() < 5

        assert node.agent is not None
        assert node.agent.returncode == 0
        assert other["readable"] is True
        assert other["stale_seconds"] < 1
    until(lambda: not is_alive(sampler), "the end of the sampler that was left behind")
