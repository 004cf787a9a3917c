"""The real agent on a simulated node of many ports."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simulators.fabric.schedule import Flap
from simulators.fabric.spec import PortSpec, Spec
from tests.system.harness import SimulatedNode, simulated_fabric, until

FLAP_SECONDS = 0.3
FLAP_EVERY_SECONDS = 3.5
"""Long enough apart that each is an outage of its own."""


def node_of(ports: int, flaps_a_port: int = 0) -> Spec:
    """InfiniBand and RoCE by turns; flaps begin anywhere within their period."""
    chance = random.Random(5)
    return Spec(tuple(_port(index, flaps_a_port, chance) for index in range(ports)))


def _port(index: int, flaps: int, chance: random.Random) -> PortSpec:
    return PortSpec(
        device=f"mlx5_{index}",
        link_layer="Ethernet" if index % 2 else "InfiniBand",
        netdev=f"eth{index}" if index % 2 else f"ib{index}",
        guid=f"b83f:d203:0012:{index:04x}",
        pci=f"0000:{index + 16:02x}:00.0",
        flaps=_flaps(flaps, chance),
    )


def _flaps(count: int, chance: random.Random) -> tuple[Flap, ...]:
    flaps = []
    for number in range(count):
        begin = (number + chance.random() / 4) * FLAP_EVERY_SECONDS
        flaps.append(Flap(begin, FLAP_SECONDS))
    return tuple(flaps)


@contextmanager
def running_agent(directory: Path, ports: int) -> Iterator[SimulatedNode]:
    """Ready, on plain files."""
    node = SimulatedNode(directory)
    with (
        simulated_fabric(node, node_of(ports), 0.0, "--plain"),
        started(node),
    ):
        yield node


@contextmanager
def started(node: SimulatedNode) -> Iterator[None]:
    node.start()
    try:
        until(node.is_ready, "a ready agent")
        yield
    finally:
        node.kill()


def pids(node: SimulatedNode) -> list[int]:
    """The agent, and its sampler."""
    assert node.agent is not None
    noted = json.loads((node.directory / "ring/sampler.json").read_text())
    return [node.agent.pid, int(noted["pid"])]
