"""RDMA netlink: state, physical state, netdev and all hardware counters of a port.

Two files of sysfs are two queries of the port and can contradict each other; PORT_GET is
one. STAT_GET refreshes hw_counters/ once and tells all of them
(drivers/infiniband/core/nldev.c; numbers: include/uapi/rdma/rdma_netlink.h). It answers
from any network namespace and knows nothing of `paths.sysfs`: a device is the same where
its name and GUID are.
"""

from collections.abc import Mapping
from enum import IntEnum
from errno import ENODEV
from functools import lru_cache
from types import MappingProxyType

import msgspec

from flapd.sources.netlink_codec import (
    MalformedError,
    attributes,
    encode_attribute,
    number,
    text,
    u32,
)
from flapd.sources.netlink_socket import NETLINK_RDMA, Kernel, NetlinkSocket

_CLIENT_NLDEV = 5 << 10
"""The client that a kind of message is for stands above its operation (RDMA_NL_GET_TYPE)."""
GET = _CLIENT_NLDEV | 1
PORT_GET = _CLIENT_NLDEV | 5
SYS_GET = _CLIENT_NLDEV | 6
STAT_GET = _CLIENT_NLDEV | 17
MONITOR = _CLIENT_NLDEV | 28


class Attribute(IntEnum):
    """enum rdma_nldev_attr."""

    DEV_INDEX = 1
    DEV_NAME = 2
    PORT_INDEX = 3
    NODE_GUID = 6
    PORT_STATE = 12
    PORT_PHYS_STATE = 13
    NDEV_INDEX = 50
    NDEV_NAME = 51
    STAT_HWCOUNTERS = 80
    STAT_HWCOUNTER_ENTRY = 81
    STAT_HWCOUNTER_ENTRY_NAME = 82
    STAT_HWCOUNTER_ENTRY_VALUE = 83
    EVENT_TYPE = 102
    MONITOR_MODE = 103


class RdmaDevice(msgspec.Struct, frozen=True):
    """One device. Its number is not used again; its name can change."""

    index: int
    name: str
    guid: str | None
    """As sysfs writes it; None where the device has none."""
    ports: int


class RdmaPort(msgspec.Struct, frozen=True):
    """One port, its state and physical state of one moment."""

    device: str
    number: int
    state: int
    physical_state: int
    netdev: str | None
    """None for InfiniBand, and where the netdev is in another network namespace."""
    netdev_index: int | None


class RdmaNetlink:
    """Used from one thread at a time; OSError where the kernel refuses, or knows no RDMA.

    EINVAL stands for much: no such device or port, no counters, firmware that failed.
    """

    def __init__(self, kernel: Kernel | None = None) -> None:
        self._kernel = kernel or NetlinkSocket(NETLINK_RDMA)

    def close(self) -> None:
        self._kernel.close()

    def devices(self) -> list[RdmaDevice]:
        answer = self._kernel.ask(GET, dump=True)
        return [_device(message.payload) for message in answer]

    def find(self, name: str, guid: str | None) -> RdmaDevice:
        """The device that sysfs knows by this name and GUID; ENODEV where there is none.

        One without a GUID cannot be told from another's, and so is none.
        """
        for device in self.devices():
            if guid is not None and (device.name, device.guid) == (name, guid):
                return device
        raise OSError(ENODEV, f"netlink knows no device {name} with GUID {guid}")

    def ports(self, device: int) -> list[RdmaPort]:
        asked = encode_attribute(Attribute.DEV_INDEX, u32(device))
        answer = self._kernel.ask(PORT_GET, asked, dump=True)
        return [parse_port(message.payload) for message in answer]

    def port_answer(self, device: int, port: int) -> bytes:
        """For `parse_port`; equal answers mean the same."""
        return self._ask_one(PORT_GET, device, port)

    def counters_answer(self, device: int, port: int) -> bytes:
        """For `parse_counters`; equal answers mean the same."""
        return self._ask_one(STAT_GET, device, port)

    def has_monitor(self) -> bool:
        """Whether it tells of devices that come and go: since Linux 6.12."""
        told = dict(attributes(self._kernel.ask(SYS_GET)[0].payload))
        return bool(number(told.get(Attribute.MONITOR_MODE, b"\0")))

    def _ask_one(self, kind: int, device: int, port: int) -> bytes:
        answer = self._kernel.ask(kind, _of_port(device, port))
        if len(answer) != 1:
            raise MalformedError("an acknowledgement where an answer should be")
        return answer[0].payload


def parse_port(answer: bytes) -> RdmaPort:
    """MalformedError where state or physical state is not in it."""
    told = dict(attributes(answer))
    netdev, index = told.get(Attribute.NDEV_NAME), told.get(Attribute.NDEV_INDEX)
    return RdmaPort(
        device=text(needed(told, Attribute.DEV_NAME)),
        number=number(needed(told, Attribute.PORT_INDEX)),
        state=number(needed(told, Attribute.PORT_STATE)),
        physical_state=number(needed(told, Attribute.PORT_PHYS_STATE)),
        netdev=text(netdev) if netdev is not None else None,
        netdev_index=number(index) if index is not None else None,
    )


class PortCounters(msgspec.Struct, frozen=True):
    """All hardware counters of a port that netlink tells: those of sysfs and optional ones."""

    device: str
    number: int
    values: Mapping[str, int]
    """By their names in sysfs, `hw_counters/...`."""


def parse_counters(answer: bytes) -> PortCounters:
    """MalformedError where it is no list of counters."""
    told = dict(attributes(answer))
    nested = attributes(needed(told, Attribute.STAT_HWCOUNTERS))
    entries = (value for kind, value in nested if kind == Attribute.STAT_HWCOUNTER_ENTRY)
    counters = {f"hw_counters/{name}": value for name, value in map(_counter, entries)}
    return PortCounters(
        device=text(needed(told, Attribute.DEV_NAME)),
        number=number(needed(told, Attribute.PORT_INDEX)),
        values=MappingProxyType(counters),
    )


@lru_cache(maxsize=4096)
def _counter(entry: bytes) -> tuple[str, int]:
    """Most are as they were when they were told last."""
    told = dict(attributes(entry))
    name = needed(told, Attribute.STAT_HWCOUNTER_ENTRY_NAME)
    return text(name), number(needed(told, Attribute.STAT_HWCOUNTER_ENTRY_VALUE))


def _device(payload: bytes) -> RdmaDevice:
    told = dict(attributes(payload))
    return RdmaDevice(
        index=number(needed(told, Attribute.DEV_INDEX)),
        name=text(needed(told, Attribute.DEV_NAME)),
        guid=_guid(number(told.get(Attribute.NODE_GUID, b"\0"))),
        ports=number(needed(told, Attribute.PORT_INDEX)),
    )


def _guid(value: int) -> str | None:
    """As node_guid_show of core/sysfs.c prints it."""
    digits = f"{value:016x}"
    return ":".join(digits[at : at + 4] for at in range(0, 16, 4)) if value else None


def _of_port(device: int, port: int) -> bytes:
    return encode_attribute(Attribute.DEV_INDEX, u32(device)) + encode_attribute(
        Attribute.PORT_INDEX, u32(port)
    )


def needed(told: Mapping[int, bytes], kind: Attribute) -> bytes:
    """MalformedError where it was not told."""
    value = told.get(kind)
    if value is None:
        raise MalformedError(f"no attribute {kind.name}")
    return value
