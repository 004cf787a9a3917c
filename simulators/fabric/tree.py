"""Tree: the /sys of a node, from its ports, at one moment and from moment to moment."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from simulators.fabric.bond import bond_files
from simulators.fabric.changes import ALWAYS_NS, Life, Lives
from simulators.fabric.counters import Source
from simulators.fabric.infiniband import device_files, device_path, port_files
from simulators.fabric.netdev import Netdev, netdev_files
from simulators.fabric.node import File, Leaves, Tree, below, removed_at, with_directories
from simulators.fabric.pci import pci_files, pci_path, vital_product_data
from simulators.fabric.port import SimulatedPort, simulated_port
from simulators.fabric.spec import PortSpec, Spec

_FIRST_IFINDEX = 4
_A_PORTS_IFINDEXES = 16
_A_LIFES_IFINDEXES = 4096
_CLASSES = ("/class/infiniband", "/class/net")


class Epoch(NamedTuple):
    """The tree from `from_ns` (monotonic) up to the next epoch."""

    from_ns: int
    tree: Tree


def simulated_ports(spec: Spec, origin_ns: int, begin_ns: int) -> tuple[SimulatedPort, ...]:
    """The ports with their schedules counted from `origin_ns` and traffic from `begin_ns`."""
    return tuple(
        simulated_port(
            port,
            [change for change in spec.changes if change.device == port.device],
            index,
            origin_ns,
            begin_ns,
        )
        for index, port in enumerate(spec.ports)
    )


def epochs(ports: Sequence[SimulatedPort]) -> tuple[Epoch, ...]:
    """Every tree there will be, in order of time."""
    moments = sorted({ALWAYS_NS}.union(*(port.moments_ns() for port in ports)))
    return tuple(Epoch(moment, build_tree(ports, moment)) for moment in moments)


def build_tree(ports: Iterable[SimulatedPort], t_ns: int = ALWAYS_NS) -> Tree:
    """The tree as it stands at `t_ns`; the contents of its files are those of any moment."""
    leaves: Leaves = {}
    directories = list(_CLASSES)
    for port in ports:
        leaves |= _function_leaves(port, t_ns)
        leaves |= _netdev_leaves(port, t_ns)
        device = port.device.at(t_ns)
        if device is not None:
            path = device_path(port, device.name)
            directories.append(f"{path}/ports")
            leaves |= removed_at(device_files(port, device.name), device.end_ns)
            leaves |= _port_leaves(port, f"{path}/ports/{port.spec.number}", t_ns)
    return with_directories(leaves, directories)


def _port_leaves(port: SimulatedPort, path: str, t_ns: int) -> Leaves:
    life = port.port.at(t_ns)
    return {} if life is None else removed_at(below(path, port_files(port)), life.end_ns)


def _function_leaves(port: SimulatedPort, t_ns: int) -> Leaves:
    """PCI functions of the device and of its bond's members."""
    spec, life = port.spec, port.function.at(t_ns)
    if spec.pci is None or life is None:
        return {}
    leaves: Leaves = {}
    for pci in dict.fromkeys((spec.pci, *(member.pci for member in spec.members))):
        leaves |= pci_files(
            pci,
            kernel=spec.shape.kernel or "",
            vendor=spec.shape.vendor,
            product=spec.shape.product,
            infiniband=port.infiniband,
            vpd=_vpd(spec),
            vf_of=spec.vf_of,
        )
    return removed_at(leaves, life.end_ns)


def _vpd(spec: PortSpec) -> File | None:
    """Of mlx5 alone; what manages NVLink switches has SMDL=SW_MNG in it."""
    if spec.driver != "mlx5" or spec.vf_of is not None:
        return None
    name = "NVIDIA ConnectX-7 HHHL Adapter card, 400GbE / NDR IB (default mode)"
    vendor = "MLX:MN=MLNX:CSKU=V2:UUID=V3:PCI=V0:MODL=CX75310AAS"
    if spec.nvlink_management:
        name, vendor = "Nvidia Umbriel HGX switch management", f"{vendor}:SMDL=SW_MNG"
    return vital_product_data(name, {"PN": "MCX75310AAS-NEAT", "V0": "PCIeGen5 x16", "VA": vendor})


def _netdev_leaves(port: SimulatedPort, t_ns: int) -> Leaves:
    spec, life = port.spec, port.netdev.at(t_ns)
    if spec.netdev is None or life is None:
        return {}
    netdev = _netdev(port, life, None if spec.members else spec.pci, port.source, port.netdev)
    if port.real is not None:
        leaves = netdev.placed(port.real.files())
    elif spec.members:
        leaves = bond_files(netdev, _members(port, t_ns))
    else:
        leaves = netdev_files(netdev)
    return removed_at(leaves, life.end_ns)


def _members(port: SimulatedPort, t_ns: int) -> list[Netdev]:
    return [
        _netdev(port, life, member.spec.pci, member.source, member.lives, place)
        for place, member in enumerate(port.members, 1)
        if (life := member.lives.at(t_ns)) is not None
    ]


def _netdev(
    port: SimulatedPort,
    life: Life,
    pci: str | None,
    source: Source,
    lives: Lives,
    place: int = 0,
) -> Netdev:
    """`place` is 0 for the port's own netdev, and counts the members of a bond from 1."""
    lived_before = lives.all.index(life)
    return Netdev(
        name=life.name,
        source=source,
        ifindex=_FIRST_IFINDEX
        + port.index * _A_PORTS_IFINDEXES
        + place
        + lived_before * _A_LIFES_IFINDEXES,
        infiniband=port.infiniband,
        guid=port.spec.guid,
        function=None if pci is None else pci_path(pci),
        dev_port=port.spec.number - 1,
        place=place,
    )
