"""Tree: the /sys of a node, from its ports."""

from collections.abc import Iterable

from simulators.fabric.infiniband import device_files
from simulators.fabric.netdev import netdev_files
from simulators.fabric.node import Leaves, Tree, below, fixed, link, with_directories
from simulators.fabric.port import SimulatedPort
from simulators.fabric.schedule import Timeline
from simulators.fabric.spec import Spec

_DRIVER = "/bus/pci/drivers/mlx5_core"


def simulated_ports(spec: Spec, origin_ns: int, begin_ns: int) -> tuple[SimulatedPort, ...]:
    """The ports with their flaps counted from `origin_ns` and traffic from `begin_ns`."""
    return tuple(
        SimulatedPort(port, Timeline(port.schedule(), origin_ns, begin_ns), index)
        for index, port in enumerate(spec.ports)
    )


def build_tree(ports: Iterable[SimulatedPort]) -> Tree:
    leaves: Leaves = {}
    for port in ports:
        leaves |= _pci_files(port) | device_files(port) | netdev_files(port)
    return with_directories(leaves)


def _pci_files(port: SimulatedPort) -> Leaves:
    path, pci = port.pci_path, port.spec.pci
    files: Leaves = {
        "vendor": fixed("0x15b3"),
        "device": fixed("0x1021"),
        "class": fixed("0x020700" if port.infiniband else "0x020000"),
        "numa_node": fixed("0"),
        "driver": link(f"{path}/driver", _DRIVER),
        "subsystem": link(f"{path}/subsystem", "/bus/pci"),
    }
    places = (f"{_DRIVER}/{pci}", f"/bus/pci/devices/{pci}")
    return {**below(path, files), **{place: link(place, path) for place in places}}
