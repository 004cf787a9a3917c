"""Which files of sysfs belong into a capture: known ones, by enumeration; trees are never walked.

Paths are relative to sysfs. Files: drivers/infiniband/core/sysfs.c, net/core/net-sysfs.c,
drivers/pci/pci-sysfs.c, drivers/net/bonding/bond_sysfs.c.
"""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import msgspec

from flapd.sources.files import list_names, read_text
from flapd.sources.function import pci_of

Directory: TypeAlias = tuple[str, tuple[str, ...] | None]

DEVICES = "class/infiniband"
NETDEVS = "class/net"

_DEVICE = (
    *("node_guid", "sys_image_guid", "node_type", "node_desc"),
    *("fw_ver", "hw_rev", "hca_type", "board_id", "parent"),
)
_FUNCTION = (
    *("vendor", "device", "subsystem_vendor", "subsystem_device", "class", "revision"),
    *("numa_node", "current_link_speed", "current_link_width", "max_link_speed", "max_link_width"),
    "vpd",  # last, since it is slow
)
_PORT = (
    *("state", "phys_state", "rate", "link_layer"),
    *("lid", "sm_lid", "lid_mask_count", "sm_sl", "cap_mask"),
)
_NETDEV = (
    *("carrier", "carrier_up_count", "carrier_down_count", "carrier_changes", "flags"),
    *("operstate", "speed", "duplex", "mtu", "type", "address", "ifindex", "iflink"),
    *("dev_port", "dev_id", "phys_port_name", "phys_switch_id"),
)
_BOND = ("slaves", "active_slave", "mode", "mii_status")
_GID_TABLES = ("gids", "gid_attrs/ndevs", "gid_attrs/types")
_FIRST_GIDS = tuple(map(str, range(16)))
_MOST_FILES_A_DIRECTORY = 256
_MOST_LINKS_A_PATH = 40


class Place(msgspec.Struct, frozen=True):
    """Where a path really is, and the links on the way there: path -> relative target."""

    path: str
    links: dict[str, str]


def ports_of(sysfs: Path, device: str, exclude: Sequence[str]) -> tuple[list[str], list[str]]:
    """Numbers of its ports: those to be read, and those that match a pattern of `exclude`."""
    directory = sysfs / DEVICES / device
    known = [pci_of(directory), read_text(directory / "node_guid")] if exclude else []
    ports: tuple[list[str], list[str]] = ([], [])
    for number in list_names(directory / "ports"):
        names = [f"{device}/{number}", *filter(None, known)]
        is_excluded = any(fnmatchcase(name, pattern) for name in names for pattern in exclude)
        ports[is_excluded].append(number)
    return ports


def device_directories(device: str, ports: Sequence[str]) -> Iterator[Directory]:
    """Each directory of a device, with the names that count in it; None = all."""
    here = f"{DEVICES}/{device}"
    yield here, _DEVICE
    yield f"{here}/hw_counters", None
    for number in ports:
        port = f"{here}/ports/{number}"
        yield port, _PORT
        yield f"{port}/counters", None
        yield f"{port}/hw_counters", None
        for table in _GID_TABLES:
            yield f"{port}/{table}", _FIRST_GIDS
    yield f"{here}/device", _FUNCTION


def device_links(device: str) -> list[str]:
    return [f"{DEVICES}/{device}/device/{name}" for name in ("driver", "physfn")]


def netdev_directories(netdev: str) -> Iterator[Directory]:
    here = f"{NETDEVS}/{netdev}"
    yield here, _NETDEV
    yield f"{here}/statistics", None
    yield f"{here}/bonding", _BOND


def netdev_links(netdev: str) -> list[str]:
    return [f"{NETDEVS}/{netdev}/{name}" for name in ("device", "master")]


def files_in(sysfs: Path, directory: str, names: tuple[str, ...] | None) -> list[str]:
    """Paths of what is there, of these names or of all."""
    there = list_names(sysfs / directory)
    chosen = there if names is None else [name for name in names if name in there]
    return [f"{directory}/{name}" for name in chosen[:_MOST_FILES_A_DIRECTORY]]


def place_of(sysfs: Path, path: str) -> Place | None:
    """Every link on the way followed; None where it leads out of sysfs or round in circles."""
    root = sysfs.resolve()
    links: dict[str, str] = {}
    done = PurePosixPath()
    todo = list(PurePosixPath(path).parts)
    while todo:
        part = todo.pop(0)
        if part == "..":
            if not done.parts:
                return None
            done = done.parent
            continue
        here = done / part
        if not (root / here).is_symlink():
            done = here
            continue
        target = _relative(root, done, (root / here).readlink())
        if target is None or len(links) >= _MOST_LINKS_A_PATH:
            return None
        links[str(here)] = str(target)
        todo[:0] = target.parts
    return Place(str(done), links)


def _relative(root: Path, directory: PurePosixPath, target: Path) -> PurePosixPath | None:
    """As seen from the link's directory; None where an absolute one leads out of `root`."""
    if not target.is_absolute():
        return PurePosixPath(target)
    if not target.is_relative_to(root):
        return None
    ups = [".."] * len(directory.parts)
    return PurePosixPath(*ups, *target.relative_to(root).parts)
