"""Whether a tree of files is the running kernel's own: only then does the kernel speak of it.

Netlink, verbs and the kernel's log know nothing of simulated trees, captures or copies,
and what they say of devices of the same name must not be mixed with those.
"""

import fcntl
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from flapd.sources.files import list_names, read_text

_MOUNTS = Path("/proc/self/mountinfo")
_ADDRESS_SHOWN = len("00:00:00:00:00:00")
_SIOCGIFHWADDR = 0x8927
_IFREQ = struct.Struct("16s24s")
"""include/uapi/linux/if.h: a name, and here an address behind its family."""


def is_kernels_sysfs(sysfs: Path, mounts: Path = _MOUNTS) -> bool:
    """By what is mounted there (Documentation/filesystems/proc.rst, 3.5), not by its name."""
    try:
        device = (sysfs / "class").stat().st_dev
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return False
    wanted = f"{os.major(device)}:{os.minor(device)}"
    kinds: set[str] = set()
    for mount, _, source in (line.partition(" - ") for line in lines):
        if mount.split()[2:3] == [wanted]:
            kinds.update(source.split()[:1])
    return kinds == {"sysfs"}


def why_not_kernels(sysfs: Path) -> str | None:
    """The reason in words; None where the kernel speaks of what is there."""
    if is_kernels_sysfs(sysfs):
        return None
    return f"paths.sysfs: {sysfs} is not the running kernel's own"


def why_no_netdevs(sysfs: Path) -> str | None:
    """The same of netdevs, some of which may be the kernel's in a tree that is not.

    Each is told from others as it is asked for; what comes later is not looked for.
    """
    reason = why_not_kernels(sysfs)
    if reason is not None:
        with suppress(OSError):
            if any(_is_kernels(sysfs, name) for name in list_names(sysfs / "class/net")):
                return None
    return reason


def _is_kernels(sysfs: Path, netdev: str) -> bool:
    """A loopback device is alike everywhere: it has no address."""
    identity = netdev_identity(sysfs, netdev)
    if identity is None or not identity[1].strip("0:"):
        return False
    with suppress(OSError):
        return kernels_netdev(netdev) == identity
    return False


def netdev_identity(sysfs: Path, netdev: str) -> tuple[int, str] | None:
    """Number and address, by which it is told from one of the same name elsewhere.

    None where sysfs does not tell both. Of a longer address, as IPoIB has, six bytes.
    """
    directory = sysfs / "class/net" / netdev
    with suppress(OSError):
        index, address = read_text(directory / "ifindex"), read_text(directory / "address")
        if index is not None and index.isdigit() and address:
            return int(index), address[:_ADDRESS_SHOWN]
    return None


def kernels_netdev(netdev: str) -> tuple[int, str]:
    """The same, of what has this name in our network namespace; OSError where nothing has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asking:
        answer = fcntl.ioctl(asking, _SIOCGIFHWADDR, _IFREQ.pack(netdev.encode(), b""))
    _, address = _IFREQ.unpack(answer)
    return socket.if_nametoindex(netdev), ":".join(f"{byte:02x}" for byte in address[2:8])
