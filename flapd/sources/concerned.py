"""Which ports it is about, what the kernel tells of a function, a netdev or an RDMA device."""

import re
from pathlib import Path

from flapd.model.observation import KernelLine
from flapd.model.port import Port
from flapd.sources.verbs import VerbsHint

_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NOT_OF_THE_LINK = frozenset({"gid_change", "pkey_change"})
"""Containers that come and go change GIDs without end."""


class Slots:
    """Where functions are plugged in."""

    def __init__(self, sysfs: Path) -> None:
        self._devices = sysfs / "bus/pci/devices"
        self._known: dict[str, frozenset[str]] = {}

    def above(self, pci: str) -> frozenset[str]:
        """The function and the bridges above it, which tell of its slot."""
        if pci not in self._known:
            place = (self._devices / pci).resolve()
            self._known[pci] = frozenset({pci, *filter(_PCI.fullmatch, place.parts)})
        return self._known[pci]


def is_of_line(line: KernelLine, port: Port, slots: Slots) -> bool:
    if line.device is not None and line.device == port.device:
        return True
    if line.netdev is not None:
        return line.netdev == port.netdev or line.netdev in port.members
    return line.pci is not None and port.pci is not None and line.pci in slots.above(port.pci)


def is_of_verbs(hint: VerbsHint, port: Port) -> bool:
    if hint.event in _NOT_OF_THE_LINK:
        return False
    return hint.device == port.device and hint.port in {None, port.number}
