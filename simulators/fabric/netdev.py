"""Netdev: the files of a network interface below /class/net.

File set and formats as captured from real interfaces. Its `statistics` stand still:
RDMA traffic is not in them.
"""

from simulators.fabric.counters import CARRIER_DOWNS, CARRIER_UPS
from simulators.fabric.node import Changes, File, Leaves, below, decimal, fixed, link
from simulators.fabric.port import SimulatedPort

_FIRST_IFINDEX = 4
_STATISTICS = ("bytes", "packets", "errors", "dropped")
# include/uapi/linux/if_arp.h
_ARPHRD_ETHER = "1"
_ARPHRD_INFINIBAND = "32"
# Up, broadcast, multicast: sysfs leaves IFF_RUNNING out, so carrier does not show here.
_FLAGS = "0x1003"
_EDGES: Changes = "edges"


def netdev_files(port: SimulatedPort) -> Leaves:
    path = port.netdev_path
    ifindex = fixed(str(_FIRST_IFINDEX + port.index))
    files: Leaves = {
        "dev_port": fixed("0"),
        "dev_id": fixed("0x0"),
        "flags": fixed(_FLAGS),
        "ifindex": ifindex,
        "iflink": ifindex,
        "type": fixed(_ARPHRD_INFINIBAND if port.infiniband else _ARPHRD_ETHER),
        "mtu": fixed("2044" if port.infiniband else "9000"),
        "address": fixed(_address(port)),
        "device": link(f"{path}/device", port.pci_path),
        "subsystem": link(f"{path}/subsystem", "/class/net"),
        **_carrier_files(port),
        **_statistics(),
    }
    by_class = f"/class/net/{port.spec.netdev}"
    return {**below(path, files), by_class: link(by_class, path)}


def _carrier_files(port: SimulatedPort) -> Leaves:
    """IPoIB has carrier while its port is ACTIVE (ulp/ipoib), Ethernet while the link is up."""
    timeline = port.timeline
    # One of each at bring-up, as captured.
    downs = port.spec.initial.get(CARRIER_DOWNS, 1)
    ups = port.spec.initial.get(CARRIER_UPS, 1)
    return {
        "carrier": _while_active(port, "1", "0"),
        "operstate": _while_active(port, "up", "down"),
        "speed": _while_active(port, str(port.spec.rate_gbps * 1000), "-1"),
        "carrier_down_count": decimal(lambda t: downs + timeline.downs(t), _EDGES),
        "carrier_up_count": decimal(lambda t: ups + timeline.actives(t), _EDGES),
        "carrier_changes": decimal(
            lambda t: downs + ups + timeline.downs(t) + timeline.actives(t), _EDGES
        ),
    }


def _while_active(port: SimulatedPort, active: str, otherwise: str) -> File:
    phase = port.timeline.phase
    lines = (f"{otherwise}\n".encode(), f"{active}\n".encode())
    return File(lambda t_ns: lines[phase(t_ns) == "active"], _EDGES)


def _statistics() -> Leaves:
    return {
        f"statistics/{side}_{what}": fixed("0") for side in ("rx", "tx") for what in _STATISTICS
    }


def _address(port: SimulatedPort) -> str:
    guid = bytes.fromhex(port.spec.guid.replace(":", ""))
    if not port.infiniband:
        return (guid[:3] + guid[5:]).hex(":")
    # IPoIB (RFC 4391): flags and queue pair number, then the port's GID.
    return (b"\x00\x00\x10\x29\xfe\x80" + bytes(6) + guid).hex(":")
