"""Lateness: how late a fast tick is while the API has much to do, by the ring's own stamps."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from flapd.model.times import MILLISECOND_NS
from flapd.sources.settings import SamplingSettings
from flapd.store.ring import read_ring, ring_files
from tests.bench.agent import running_agent
from tests.bench.figure import Figure, Scale, percentile
from tests.bench.machine import memory_directory
from tests.system.harness import ROOT, SimulatedNode

_INTERVAL_NS = SamplingSettings().interval.ns


def lateness(scale: Scale) -> list[Figure]:
    with memory_directory() as directory, running_agent(directory, scale.ports) as node:
        quiet_ms = _latenesses_ms(node, scale.seconds / 2)
        with _load(node):
            loaded_ms = _latenesses_ms(node, scale.seconds)
    return [
        Figure(
            what=f"lateness of a fast tick, API under load: p{100 * share:g}",
            unit="ms",
            value=percentile(loaded_ms, share),
            budget=budget,
            floor=f"quiet {percentile(quiet_ms, share):.2f} ms",
            note=f"{len(loaded_ms)} ticks",
        )
        for share, budget in ((0.99, 5), (0.999, 20))
    ]


@contextmanager
def _load(node: SimulatedNode) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.bench.load", str(node.socket)]
    loading = subprocess.Popen(command, cwd=ROOT)
    try:
        yield
        assert loading.poll() is None, "the load ended by itself"
    finally:
        loading.kill()
        loading.wait()


def _latenesses_ms(node: SimulatedNode, seconds: float) -> list[float]:
    """Of every fast tick from now on for so long."""
    since_ns = time.monotonic_ns()
    time.sleep(seconds)
    return [
        late_ns / MILLISECOND_NS
        for path in ring_files(node.directory / "ring")
        if (ring := read_ring(path)).tier == "fast"
        for late_ns in _late_ns([(row.before_ns, row.after_ns) for row in ring.rows(since_ns)])
    ]


def _late_ns(readings: list[tuple[int, int]]) -> Iterator[int]:
    """A tick is due at the next multiple of the interval once the one before it has ended."""
    for (_, ended_ns), (began_ns, _) in pairwise(readings):
        yield began_ns - (ended_ns // _INTERVAL_NS + 1) * _INTERVAL_NS
