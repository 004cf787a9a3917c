"""Names: of nodes, ports and switches of a fleet, and ids of what is told of them."""

from collections.abc import Iterator
from hashlib import blake2b

from simulators.cluster.spec import FleetSpec
from simulators.errors import SimulatorError
from simulators.job.log import host_of

TOPOLOGY_HEAD = "node,device,port,switch,switch_port"


def node_name(node: int) -> str:
    return host_of(node)


def guid(node: int, port: int) -> str:
    """As simulators/job/node.py has it."""
    return f"b83f:d203:{node:04x}:{port + 1:04x}"


def port_key(node: int, port: int) -> str:
    return f"{guid(node, port)}/1"


def port_name(port: int) -> str:
    return f"mlx5_{port}/1"


def leaf_of(spec: FleetSpec, node: int, port: int) -> str:
    """The switch at the other end: one a pod and rail."""
    return f"leaf-{node // spec.pod_nodes}-{port}"


def behind(spec: FleetSpec, switch: str) -> Iterator[tuple[int, int]]:
    """Node and port of all that a switch carries; SimulatorError where there is no such switch."""
    level, *numbers = switch.split("-")
    if (level, len(numbers)) not in (("leaf", 2), ("spine", 1)) or not "".join(numbers).isdigit():
        raise SimulatorError(f"switch {switch!r} is neither leaf-POD-RAIL nor spine-RAIL")
    rail = int(numbers[-1])
    for node in range(spec.nodes):
        if level == "spine" or node // spec.pod_nodes == int(numbers[0]):
            yield node, rail


def topology_lines(spec: FleetSpec) -> Iterator[str]:
    """CSV of all links: who is at the other end of each port."""
    yield TOPOLOGY_HEAD
    for node in range(spec.nodes):
        for port in range(spec.ports_per_node):
            place = node % spec.pod_nodes + 1
            yield f"{node_name(node)},mlx5_{port},1,{leaf_of(spec, node, port)},{place}"


def id_of(kind: str, *said: object) -> str:
    """The same for the same, as agents make theirs."""
    written = "|".join(map(str, said))
    return f"{kind}-" + blake2b(written.encode(), digest_size=8).hexdigest()
