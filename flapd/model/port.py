"""Port: one RDMA port and what it is known by."""

import msgspec


class Port(msgspec.Struct, frozen=True):
    """One RDMA port. `key` is its identity and stays; names are attributes that may change.

    `key` is GUID/number, or PCI address/number where the device has no GUID.
    """

    key: str
    device: str
    number: int
    link_layer: str
    guid: str | None = None
    pci: str | None = None
    driver: str | None = None
    netdev: str | None = None
    witness: str | None = None
    """Counter of the catalogue that counts every down of this port; None = there is none."""

    @property
    def name(self) -> str:
        return f"{self.device}/{self.number}"
