"""RdmaMonitor: devices that come, go, are renamed, or get another netdev (Linux 6.12).

There are no events of a port's state. An event says that discovery must look again, at
once; it is not itself believed (drivers/infiniband/core/nldev.c: rdma_nl_notify_event).
"""

from errno import EOPNOTSUPP

import msgspec

from flapd.sources.netlink_codec import Message, attributes, number, text
from flapd.sources.netlink_socket import NETLINK_RDMA, NetlinkSocket
from flapd.sources.rdma_netlink import MONITOR, Attribute, RdmaNetlink, needed

_GROUP_NOTIFY = 4
_KINDS = (
    *("registered", "unregistered", "netdev_attached", "netdev_detached"),
    *("renamed", "netdev_renamed"),
)
"""By the kernel's number (enum rdma_nl_event_type)."""


class DeviceEvent(msgspec.Struct, frozen=True):
    """What happened to which device; `kind` is the kernel's number where that is a new one."""

    kind: str
    device: str | None
    port: int | None = None
    netdev: str | None = None


class RdmaMonitor:
    """Used from one thread at a time; EOPNOTSUPP where this kernel tells nothing."""

    def __init__(self) -> None:
        self._socket = NetlinkSocket(NETLINK_RDMA)
        try:
            self._socket.join(_GROUP_NOTIFY)
        except OSError:
            self._socket.close()
            raise

    def fileno(self) -> int:
        """Readable where something happened."""
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def events(self) -> list[DeviceEvent]:
        """What happened since; never waits. ENOBUFS: more than was kept."""
        told = self._socket.waiting()
        return [event_of(message) for message in told if message.kind == MONITOR]


def open_monitor(netlink: RdmaNetlink) -> RdmaMonitor:
    """OSError where there is none: a kernel that has the group need not have the events."""
    if not netlink.has_monitor():
        raise OSError(EOPNOTSUPP, "this kernel does not tell of RDMA devices; Linux 6.12 does")
    return RdmaMonitor()


def event_of(message: Message) -> DeviceEvent:
    """MalformedError where it does not say what happened."""
    told = dict(attributes(message.payload))
    kind = number(needed(told, Attribute.EVENT_TYPE))
    device, netdev = told.get(Attribute.DEV_NAME), told.get(Attribute.NDEV_NAME)
    port = told.get(Attribute.PORT_INDEX)
    return DeviceEvent(
        kind=_KINDS[kind] if kind < len(_KINDS) else str(kind),
        device=text(device) if device is not None else None,
        port=number(port) if port is not None else None,
        netdev=text(netdev) if netdev is not None else None,
    )
