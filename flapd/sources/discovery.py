"""Discovery: which RDMA ports are there, by enumeration, and what each is known by.

Reads only what needs no query of the device: names, links, GUIDs, link layer
(drivers/infiniband/core/sysfs.c). Never walks a tree: GID tables are large.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec.structs import replace

from flapd.core.fabric.catalogue import (
    CARRIER_DOWNS,
    LINK_DOWN_EVENTS_PHY,
    WITNESSES,
    witnesses_among,
)
from flapd.model.errors import FlapdError
from flapd.model.port import Port
from flapd.sources.files import is_there, list_names, read_text, reason_of
from flapd.sources.function import Function, function_of, has_product_data, manages_nvlink, pci_of
from flapd.sources.netdev import members_of, netdev_directory, netdev_of
from flapd.sources.settings import PortsSettings

__all__ = [
    "Discovery",
    "devices_of",
    "netdev_directory",
    "port_directory",
    "ports_of_device",
    "refuse_no_sysfs",
]

_NUMBER = re.compile(r"0|[1-9][0-9]{0,2}")


def devices_of(sysfs: Path) -> list[str]:
    """Names of all RDMA devices; OSError where they cannot be listed."""
    return list_names(sysfs / "class/infiniband")


def ports_of_device(sysfs: Path, device: str, settings: PortsSettings) -> Iterator[Port]:
    """One look, as by `Discovery.ports_of`."""
    return Discovery(sysfs, settings).ports_of(device)


def refuse_no_sysfs(sysfs: Path) -> None:
    """FlapdError where nothing could ever be found: a node without RDMA has the directory too."""
    if not (sysfs / "class").is_dir():
        raise FlapdError(f"paths.sysfs: {sysfs} is no sysfs, since it has no directory `class`")


def port_directory(sysfs: Path, port: Port) -> Path:
    return sysfs / "class/infiniband" / port.device / "ports" / str(port.number)


class Discovery:
    """Looks again and again, and reads once what cannot change while a device exists."""

    def __init__(self, sysfs: Path, settings: PortsSettings) -> None:
        self._sysfs = str(sysfs)
        self._settings = settings
        self._functions: dict[str, Function] = {}
        self._managing: dict[str, tuple[Function, bool]] = {}
        """Whether those whose vital product data was read manage NVLink."""
        self.unknown: dict[str, str] = {}
        """Devices of which it is not known whether they do, and why."""

    def ports_of(self, device: str) -> Iterator[Port]:
        """Every port of it that is included; after a bond's port one for each of its members.

        OSError where something cannot be read just now.
        """
        directory = self._directory(device)
        for number in list_names(f"{directory}/ports"):
            if _NUMBER.fullmatch(number) and not self._matches(
                self._settings.exclude, f"{device}/{number}"
            ):
                yield from self._found(device, int(number))

    def _directory(self, device: str) -> str:
        return f"{self._sysfs}/class/infiniband/{device}"

    def _found(self, device: str, number: int) -> Iterator[Port]:
        function = self._function(device)
        port = Port(
            key=f"{function.guid or function.pci or device}/{number}",
            device=device,
            number=number,
            link_layer="Unknown",
            guid=function.guid,
            pci=function.pci,
            driver=function.driver,
        )
        if self._includes(port, function):
            port = self._with_link_layer(port)
            if not self._manages_nvlink(port, function):
                port = self._with_netdev(port, function)
                yield port
                yield from self._members(port)

    def _function(self, device: str) -> Function:
        function = function_of(self._directory(device), self._functions.get(device))
        self._functions[device] = function
        return function

    def _includes(self, port: Port, function: Function) -> bool:
        if function.is_virtual and not self._settings.virtual_functions:
            return False
        names = (port.name, port.guid, port.pci)
        excluded = self._matches(self._settings.exclude, *names)
        return not excluded and self._matches(self._settings.include, *names)

    def _matches(self, patterns: tuple[str, ...], *names: str | None) -> bool:
        return any(fnmatchcase(name, pattern) for name in names if name for pattern in patterns)

    def _with_link_layer(self, port: Port) -> Port:
        told = read_text(f"{self._port_directory(port)}/link_layer")
        return replace(port, link_layer=told or port.link_layer)

    def _port_directory(self, port: Port) -> str:
        return f"{self._directory(port.device)}/ports/{port.number}"

    def _manages_nvlink(self, port: Port, function: Function) -> bool:
        """What cannot be read is taken for a port of the fabric."""
        if not has_product_data(port.driver, port.link_layer):
            return False
        read, manages = self._managing.get(port.device, (None, False))
        if read != function:
            self.unknown.pop(port.device, None)
            try:
                manages = manages_nvlink(self._directory(port.device))
            except OSError as error:
                manages = False
                self.unknown[port.device] = reason_of(error)
            self._managing[port.device] = function, manages
        return manages

    def _with_netdev(self, port: Port, function: Function) -> Port:
        directory = self._directory(port.device)
        netdev = netdev_of(directory, port.number, port.link_layer, function.parent)
        bonds = netdev is not None and port.link_layer != "InfiniBand"
        port = replace(
            port,
            netdev=netdev,
            members=members_of(self._sysfs, netdev) if netdev and bonds else (),
        )
        return replace(port, witnesses=self._witnesses(port))

    def _witnesses(self, port: Port) -> tuple[str, ...]:
        """Those of the counters that the catalogue has for a port like this that are here."""
        candidates = witnesses_among(port.driver, port.link_layer, WITNESSES)
        return tuple(name for name in candidates if self._is_there(port, name))

    def _is_there(self, port: Port, name: str) -> bool:
        if name == CARRIER_DOWNS:
            return port.netdev is not None and is_there(
                f"{self._netdev_directory(port.netdev)}/carrier_down_count"
            )
        return name != LINK_DOWN_EVENTS_PHY and is_there(f"{self._port_directory(port)}/{name}")

    def _netdev_directory(self, netdev: str) -> str:
        return f"{self._sysfs}/class/net/{netdev}"

    def _members(self, bond: Port) -> Iterator[Port]:
        for member in bond.members:
            port = replace(
                bond,
                key=f"{bond.key}/{member}",
                pci=pci_of(self._netdev_directory(member)),
                netdev=member,
                member=member,
                members=(),
            )
            yield replace(port, witnesses=self._witnesses(port))
