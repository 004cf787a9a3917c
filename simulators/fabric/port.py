"""Port: a port of the scenario with its timeline and its places in the tree."""

from dataclasses import dataclass

from simulators.fabric.schedule import Timeline
from simulators.fabric.spec import PortSpec


@dataclass(frozen=True)
class SimulatedPort:
    spec: PortSpec
    timeline: Timeline
    index: int
    """Its place among the node's ports, from 0; LID and ifindex come from it."""

    @property
    def infiniband(self) -> bool:
        return self.spec.link_layer == "InfiniBand"

    @property
    def pci_path(self) -> str:
        """Behind a bridge on the bus before its own, as slots of servers are."""
        domain, bus = self.spec.pci[:4], int(self.spec.pci[5:7], 16) - 1
        root = f"{domain}:{bus:02x}"
        return f"/devices/pci{root}/{root}:00.0/{self.spec.pci}"

    @property
    def device_path(self) -> str:
        return f"{self.pci_path}/infiniband/{self.spec.device}"

    @property
    def netdev_path(self) -> str:
        return f"{self.pci_path}/net/{self.spec.netdev}"
