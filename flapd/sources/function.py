"""Function: what an RDMA device is known by, and what kind of function of a card it is.

None of it changes while the device exists, and none of it asks the firmware, except for
the vital product data (drivers/pci/vpd.c), which is to be read once.
"""

import os
import re
from errno import ENOENT

import msgspec

from flapd.core.fabric.catalogue import driver_of
from flapd.sources.files import LONGEST_BYTES, AnyPath, read_text

_GUID = re.compile(r"[0-9a-f]{4}(:[0-9a-f]{4}){3}")
_NO_GUID = "0000:0000:0000:0000"
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_MANAGES_NVLINK = (b"SW_MNG", b"Umbriel")
"""In the vital product data of functions that manage the NVLink switches of HGX B200 and B300:
they look like HCAs, and each query of their port fails and costs a line in the kernel's log."""
_SOFTWARE_IWARP = "Software iWARP stack"
"""The description that siw gives its devices (drivers/infiniband/sw/siw/siw_main.c)."""


class Function(msgspec.Struct, frozen=True):
    """One RDMA device. By the first three it is told from another that had its name before."""

    inode: int
    guid: str | None
    pci: str | None
    driver: str | None
    is_virtual: bool
    parent: str | None
    """Netdev that a software device sits upon."""


def function_of(directory: str, known: Function | None) -> Function:
    """Of the device with this directory below class/infiniband; `known` where it is that one.

    OSError where it is going.
    """
    told_by = _inode(directory), _guid(directory), pci_of(directory)
    if known is not None and (known.inode, known.guid, known.pci) == told_by:
        return known
    parent = read_text(f"{directory}/parent")
    return Function(
        *told_by,
        driver=_link_name(f"{directory}/device/driver") or _software_driver(directory, parent),
        is_virtual=_link_name(f"{directory}/device/physfn") is not None,
        parent=parent,
    )


def pci_of(directory: AnyPath) -> str | None:
    """Address of the PCI function behind a device or a netdev."""
    name = _link_name(f"{directory}/device")
    return name if name is not None and _PCI.fullmatch(name) else None


def has_product_data(driver: str | None, link_layer: str) -> bool:
    """Whether its vital product data says if it is a port of the fabric."""
    return driver_of(driver).name == "mlx5" and link_layer == "InfiniBand"


def manages_nvlink(directory: str) -> bool:
    """Whether it is no port of the fabric; OSError where that cannot be read.

    The kernel shows these data to root alone (drivers/pci/vpd.c), of this vendor's cards to
    everybody in later versions.
    """
    try:
        product_data = _read_bytes(f"{directory}/device/vpd")
    except FileNotFoundError:
        return False  # the card has none
    return any(mark in product_data for mark in _MANAGES_NVLINK)


def _inode(directory: str) -> int:
    return os.stat(directory).st_ino  # noqa: PTH116


def _guid(directory: str) -> str | None:
    """None where the device has none."""
    guid = read_text(f"{directory}/node_guid")
    if guid is None:
        raise FileNotFoundError(ENOENT, "there is no node_guid: it is going", directory)
    return guid if guid != _NO_GUID and _GUID.fullmatch(guid) else None


def _link_name(link: str) -> str | None:
    """Last component of what a link leads to; None where there is no link."""
    try:
        return os.readlink(link).rpartition("/")[2]  # noqa: PTH115
    except OSError:
        return None


def _software_driver(directory: str, parent: str | None) -> str | None:
    """A software device is bound to no driver; only rxe names what it sits upon."""
    if parent is not None:
        return "rdma_rxe"
    return "siw" if read_text(f"{directory}/node_desc") == _SOFTWARE_IWARP else None


def _read_bytes(file: str) -> bytes:
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.pread(fd, LONGEST_BYTES, 0)
    finally:
        os.close(fd)
