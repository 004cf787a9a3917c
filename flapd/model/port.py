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
    witnesses: tuple[str, ...] = ()
    """Counters here that count every down, the best first."""
    member: str | None = None
    """Of a bond's port: the member netdev this entry stands for; it has a key of its own."""
    members: tuple[str, ...] = ()
    """Netdevs of the bond behind this port."""

    @property
    def witness(self) -> str | None:
        """The counter to count by; None = there is none."""
        return self.witnesses[0] if self.witnesses else None

    @property
    def counted_by(self) -> str:
        """Whose count its witness is: readings of another do not continue it."""
        witness = self.witness or "nothing"
        return f"{witness} of {self.netdev if witness.startswith('net/') else self.pci}"

    @property
    def name(self) -> str:
        return f"{self.device}/{self.number}"
