"""Discovery: which RDMA ports are there, by enumeration, and what each is known by.

Reads only what needs no query of the device: names, links, GUIDs, link layer
(drivers/infiniband/core/sysfs.c). Never walks a tree: GID tables are large.
"""

import re
from collections.abc import Iterator
from errno import ENOENT
from fnmatch import fnmatchcase
from pathlib import Path

from flapd.core.fabric.catalogue import CARRIER_DOWNS, LINK_DOWNED, witnesses_among
from flapd.model.errors import FlapdError
from flapd.model.port import Port
from flapd.sources.files import list_names, read_text
from flapd.sources.settings import PortsSettings

_GUID = re.compile(r"[0-9a-f]{4}(:[0-9a-f]{4}){3}")
_NO_GUID = "0000:0000:0000:0000"
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NUMBER = re.compile(r"[0-9]{1,3}", re.ASCII)
_NETDEV = re.compile(r"[^/\s]{1,15}")
_FIRST_GIDS = 16


def devices_of(sysfs: Path) -> list[str]:
    """Names of all RDMA devices; OSError where they cannot be listed."""
    return list_names(sysfs / "class/infiniband")


def ports_of_device(sysfs: Path, device: str, settings: PortsSettings) -> Iterator[Port]:
    """Every port of it that is included; OSError where something cannot be read just now."""
    directory = sysfs / "class/infiniband" / device
    for number in list_names(directory / "ports"):
        if _NUMBER.fullmatch(number) and _included(settings, [f"{device}/{number}"]):
            port = _describe(sysfs, device, int(number))
            if _included(settings, [port.name, port.guid, port.pci]):
                yield port


def refuse_no_sysfs(sysfs: Path) -> None:
    """FlapdError where nothing could ever be found: a node without RDMA has the directory too."""
    if not (sysfs / "class").is_dir():
        raise FlapdError(f"paths.sysfs: {sysfs} is no sysfs, since it has no directory `class`")


def port_directory(sysfs: Path, port: Port) -> Path:
    return sysfs / "class/infiniband" / port.device / "ports" / str(port.number)


def netdev_directory(sysfs: Path, netdev: str) -> Path:
    return sysfs / "class/net" / netdev


def _included(settings: PortsSettings, names: list[str | None]) -> bool:
    def any_matches(patterns: tuple[str, ...]) -> bool:
        return any(fnmatchcase(name, pattern) for name in names if name for pattern in patterns)

    if any_matches(settings.exclude):
        return False
    only_the_name_is_known = len(names) == 1
    return only_the_name_is_known or any_matches(settings.include)


def _describe(sysfs: Path, device: str, number: int) -> Port:
    directory = sysfs / "class/infiniband" / device
    guid = read_text(directory / "node_guid")
    if guid is None:
        raise FileNotFoundError(ENOENT, "there is no node_guid: it is going", device)
    known_guid = guid if guid != _NO_GUID and _GUID.fullmatch(guid) else None
    pci = _link_name(directory / "device")
    if pci is not None and not _PCI.fullmatch(pci):
        pci = None
    link_layer = read_text(directory / "ports" / str(number) / "link_layer") or "Unknown"
    netdev = _netdev(directory, number, link_layer)
    return Port(
        key=f"{known_guid or pci or device}/{number}",
        device=device,
        number=number,
        link_layer=link_layer,
        guid=known_guid,
        pci=pci,
        driver=_link_name(directory / "device/driver"),
        netdev=netdev,
        witnesses=_witnesses(sysfs, directory / "ports" / str(number), link_layer, netdev),
    )


def _link_name(link: Path) -> str | None:
    """Last component of what a link leads to; None where there is no link."""
    try:
        return link.readlink().name
    except OSError:
        return None


def _netdev(directory: Path, number: int, link_layer: str) -> str | None:
    """The netdev behind a port: of its GIDs (RoCE), else of the same PCI function.

    The GIDs of an InfiniBand port have none: each read of one fails.
    """
    for gid in range(0 if link_layer == "InfiniBand" else _FIRST_GIDS):
        name = read_text(directory / f"ports/{number}/gid_attrs/ndevs/{gid}")
        if name and _NETDEV.fullmatch(name):
            return name
    for name in list_names(directory / "device/net"):
        # dev_port counts from 0 and tells the netdevs of a dual-port function apart
        if read_text(directory / "device/net" / name / "dev_port") == str(number - 1):
            return name
    return None


def _witnesses(sysfs: Path, port: Path, link_layer: str, netdev: str | None) -> tuple[str, ...]:
    """Counters that are here of those that the catalogue has for a port like this."""
    there = {LINK_DOWNED} if (port / LINK_DOWNED).exists() else set()
    if netdev and (netdev_directory(sysfs, netdev) / "carrier_down_count").exists():
        there.add(CARRIER_DOWNS)
    return witnesses_among(link_layer, there)
