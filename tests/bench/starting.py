"""Starting: until the agent has read a port, and until a command has printed."""

import time

from flapd.model.times import SECOND_NS
from flapd.store.ring import RingError, read_ring, ring_files
from tests.bench.agent import node_of, running_agent
from tests.bench.figure import Figure, Scale, percentile
from tests.bench.machine import memory_directory
from tests.system.harness import SimulatedNode, simulated_fabric, until


def starting(scale: Scale) -> list[Figure]:
    firsts = [_first_sample_seconds(scale.ports) for _ in range(scale.starts)]
    with memory_directory() as directory, running_agent(directory, scale.ports) as node:
        commands = [_command_seconds(node) for _ in range(scale.starts)]
    return [
        Figure(
            what="agent start to first sample",
            unit="s",
            value=percentile(firsts, 0.5),
            budget=1,
            note=f"median of {len(firsts)}",
        ),
        Figure(
            what="`flapd flaps`, start to end",
            unit="s",
            value=percentile(commands, 0.5),
            budget=0.3,
            note=f"median of {len(commands)}",
        ),
    ]


def _first_sample_seconds(ports: int) -> float:
    with memory_directory() as directory:
        node = SimulatedNode(directory)
        with simulated_fabric(node, node_of(ports), 0.0, "--plain"):
            began_ns = time.monotonic_ns()
            node.start()
            try:
                first_ns = until(lambda: _first_reading_ns(node), "a first sample")
            finally:
                node.kill()
    return (first_ns - began_ns) / SECOND_NS


def _first_reading_ns(node: SimulatedNode) -> int | None:
    """When the first reading of any port ended."""
    stamps = []
    for path in ring_files(node.directory / "ring"):
        try:
            stamps += [row.after_ns for row in read_ring(path).rows()]
        except RingError:
            continue
    return min(stamps, default=None)


def _command_seconds(node: SimulatedNode) -> float:
    began = time.monotonic()
    run = node.flapd("flaps", "--config", str(node.config))
    assert run.returncode == 0, run.stderr
    return time.monotonic() - began
