"""Netdev: which network interface is behind a port, and which are behind that."""

import re
from pathlib import Path

from flapd.sources.files import list_names, read_text

_NAME = re.compile(r"[^/\s]{1,15}")
_FIRST_GIDS = 16
_MOST_MEMBERS = 16


def netdev_directory(sysfs: Path, netdev: str) -> Path:
    return sysfs / "class/net" / netdev


def netdev_of(directory: str, number: int, link_layer: str, parent: str | None) -> str | None:
    """Of the port's GIDs (RoCE), else of the same function, else `parent` (software devices).

    Only GIDs know that a port's netdev is a bond. Those of an InfiniBand port have none:
    each read of one fails.
    """
    named = None
    if link_layer == "Ethernet":
        named = _of_gids(f"{directory}/ports/{number}/gid_attrs/ndevs")
    return named or _of_function(f"{directory}/device/net", number) or _checked(parent)


def members_of(sysfs: str, netdev: str) -> tuple[str, ...]:
    """Netdevs that a bond is made of; none where it is no bond."""
    slaves = read_text(f"{sysfs}/class/net/{netdev}/bonding/slaves") or ""
    return tuple(filter(_checked, sorted(set(slaves.split()))))[:_MOST_MEMBERS]


def _of_gids(netdevs: str) -> str | None:
    """The first that is named: a slot without a GID gives EINVAL."""
    for gid in range(_FIRST_GIDS):
        if name := _checked(read_text(f"{netdevs}/{gid}")):
            return name
    return None


def _of_function(netdevs: str, number: int) -> str | None:
    """`dev_port` counts from 0 and tells the netdevs of a dual-port function apart."""
    for name in list_names(netdevs):
        if read_text(f"{netdevs}/{name}/dev_port") == str(number - 1):
            return _checked(name)
    return None


def _checked(name: str | None) -> str | None:
    """It becomes part of a path."""
    return name if name and _NAME.fullmatch(name) and name not in {".", ".."} else None
