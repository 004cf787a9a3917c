"""Netdev: the files of a network interface below /class/net.

File set and formats as captured from real interfaces. Its `statistics` stand still:
RDMA traffic is not in them.
"""

import errno
from dataclasses import dataclass

from simulators.fabric.counters import CARRIER_DOWNS, CARRIER_RULES, CARRIER_UPS, Source
from simulators.fabric.node import Changes, File, Leaves, below, decimal, fixed, link, refusal

VIRTUAL = "/devices/virtual/net"

_STATISTICS = ("bytes", "packets", "errors", "dropped")
# include/uapi/linux/if_arp.h
_ARPHRD_ETHER = "1"
_ARPHRD_INFINIBAND = "32"
# Up, broadcast, multicast: sysfs leaves IFF_RUNNING out, so carrier does not show here.
_UP = b"0x1003\n"
_ADMIN_DOWN = b"0x1002\n"
_EDGES: Changes = "edges"


@dataclass(frozen=True)
class Netdev:
    """What an interface is made of; `function` is the path of its PCI function, if any."""

    name: str
    source: Source
    ifindex: int
    infiniband: bool
    guid: str
    function: str | None
    dev_port: int = 0
    place: int = 0
    """Among the netdevs of its port, from 0; its address comes from it."""

    @property
    def path(self) -> str:
        return f"{self.function}/net/{self.name}" if self.function else f"{VIRTUAL}/{self.name}"

    def placed(self, files: Leaves) -> Leaves:
        """Files of it at their paths, with the link below /class/net."""
        by_class = f"/class/net/{self.name}"
        links = {"subsystem": link(f"{self.path}/subsystem", "/class/net")}
        if self.function:
            links["device"] = link(f"{self.path}/device", self.function)
        return {**below(self.path, {**files, **links}), by_class: link(by_class, self.path)}


def netdev_files(netdev: Netdev) -> Leaves:
    ifindex = fixed(str(netdev.ifindex))
    files: Leaves = {
        "dev_port": fixed(str(netdev.dev_port)),
        "dev_id": fixed("0x0"),
        "ifindex": ifindex,
        "iflink": ifindex,
        "type": fixed(_ARPHRD_INFINIBAND if netdev.infiniband else _ARPHRD_ETHER),
        "mtu": fixed("2044" if netdev.infiniband else "9000"),
        "address": fixed(_address(netdev)),
        **_carrier_files(netdev),
        **_statistics(),
    }
    return netdev.placed(files)


def _carrier_files(netdev: Netdev) -> Leaves:
    """`carrier` and `speed` of an interface that is administratively down refuse the read."""
    timeline = netdev.source.timeline

    def is_disabled(t_ns: int) -> bool:
        return not netdev.infiniband and timeline.phase(t_ns) == "admin"

    def carrier(t_ns: int) -> bytes:
        if is_disabled(t_ns):
            raise refusal(errno.EINVAL)
        return b"1\n" if timeline.phase(t_ns) == "active" else b"0\n"

    def speed(t_ns: int) -> bytes:
        has_carrier = carrier(t_ns) == b"1\n"
        return b"%d\n" % (timeline.rate(t_ns).mbps if has_carrier else -1)

    def operstate(t_ns: int) -> bytes:
        return b"up\n" if timeline.phase(t_ns) == "active" else b"down\n"

    def flags(t_ns: int) -> bytes:
        return _ADMIN_DOWN if is_disabled(t_ns) else _UP

    return {
        "carrier": File(carrier, _EDGES),
        "operstate": File(operstate, _EDGES),
        "speed": File(speed, _EDGES),
        "flags": File(flags, _EDGES),
        **_carrier_counts(netdev.source),
    }


def _carrier_counts(source: Source) -> Leaves:
    downs, ups = (
        source.counter(name, CARRIER_RULES[name]) for name in (CARRIER_DOWNS, CARRIER_UPS)
    )
    return {
        "carrier_down_count": downs.file(),
        "carrier_up_count": ups.file(),
        "carrier_changes": decimal(lambda t: downs.value(t) + ups.value(t), "flows"),
    }


def _statistics() -> Leaves:
    return {
        f"statistics/{side}_{what}": fixed("0") for side in ("rx", "tx") for what in _STATISTICS
    }


def _address(netdev: Netdev) -> str:
    guid = bytes.fromhex(netdev.guid.replace(":", ""))
    if not netdev.infiniband:
        last = (guid[-1] + netdev.place) % 256
        return (guid[:3] + guid[5:-1] + bytes([last])).hex(":")
    # IPoIB (RFC 4391): flags and queue pair number, then the port's GID.
    return (b"\x00\x00\x10\x29\xfe\x80" + bytes(6) + guid).hex(":")
