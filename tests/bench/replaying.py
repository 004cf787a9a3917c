"""Replaying: a recording through the whole engine."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.model.observation import (
    READ_FIRST,
    READ_STATE,
    READ_WITNESS,
    ClockPair,
    Observation,
    PortSeen,
    PortsPresent,
    Sample,
    Tick,
)
from flapd.model.port import Port
from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.store.recording import RecordingWriter
from tests.bench.figure import Figure, Scale
from tests.bench.machine import memory_directory
from tests.system.harness import ROOT

_TOLD = re.compile(r"(\d+) observations replayed in ([0-9.]+) s")
_TICK_NS = 100 * MILLISECOND_NS
_FLAP_EVERY = 3_000
_WALL_NS = 1_700_000_000 * SECOND_NS
_WITNESS = "counters/link_downed"


def replay(scale: Scale) -> list[Figure]:
    with memory_directory() as directory:
        path = directory / "some.rec"
        _write(path, scale)
        run = subprocess.run(
            [sys.executable, "-m", "flapd", "replay", str(path), "--json"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    told = _TOLD.search(run.stderr)
    assert told is not None, run.stderr
    observations, seconds = int(told[1]), float(told[2])
    return [
        Figure(
            what="replay of a recording through the engine",
            unit="/s",
            value=observations / max(seconds, 0.005),
            budget=100_000,
            at_least=True,
            note=f"{observations:,} observations in {seconds:.2f} s",
        )
    ]


def _write(path: Path, scale: Scale) -> None:
    writer = RecordingWriter(path, "node7", "0.1.0", 1 << 40)
    writer.state(Engine("node7", FlapSettings(), None).checkpoint())
    observations = _observations(scale.ports, scale.samples)
    while batch := list(islice(observations, 200)):
        writer.observations(batch)
    writer.close()


def _observations(ports: int, samples: int) -> Iterator[Observation]:
    """As of a quiet node: traffic in every sample, the state in every fifth, a flap at times."""
    keys = [f"b83f:d203:0012:{index:04x}/1" for index in range(ports)]
    yield ClockPair(0, _WALL_NS, "boot-1")
    for index, key in enumerate(keys):
        name = f"mlx5_{index}"
        yield PortSeen(Port(key, name, 1, "InfiniBand", guid=key[:-2], witnesses=(_WITNESS,)), 0)
    yield PortsPresent(tuple(keys), (), 0)
    for number in range(samples):
        tick, index = divmod(number, ports)
        if index == 0 and tick % 10 == 0:
            yield Tick(tick * _TICK_NS)
        yield _sample(keys[index], tick, number)


def _sample(key: str, tick: int, number: int) -> Sample:
    now_ns = (tick + 1) * _TICK_NS
    values = {"counters/port_xmit_data": number << 20}
    reads = READ_WITNESS
    if tick % 5 == 0:
        reads |= READ_STATE
        values |= {"counters/port_rcv_data": number << 20, "hw_counters/rx_write_requests": number}
    if tick == 0:
        reads |= READ_FIRST
        values |= {"state": 4, "phys_state": 5, _WITNESS: 0}
    elif tick % _FLAP_EVERY == 0:
        values[_WITNESS] = tick // _FLAP_EVERY
    return Sample(key, now_ns, now_ns + 50_000, reads, values)
