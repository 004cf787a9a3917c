"""Queue pairs: which process has them on which port, and which of them are in error.

RES_GET and RES_QP_GET of drivers/infiniband/core/nldev.c, numbers of
include/uapi/rdma/rdma_netlink.h. To tell of a queue pair mlx5 asks its firmware: so this is asked
seldom, and not at all of a device that has very many.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path

import msgspec

from flapd.sources.kernel_paths import why_not_kernels
from flapd.sources.netlink_codec import attributes, encode_attribute, number, text, u32
from flapd.sources.netlink_socket import NETLINK_RDMA, Kernel, NetlinkSocket
from flapd.sources.rdma_netlink import Attribute, RdmaDevice, RdmaNetlink

_CLIENT_NLDEV = 5 << 10
RES_GET = _CLIENT_NLDEV | 9
RES_QP_GET = _CLIENT_NLDEV | 10

MOST_OF_A_DEVICE = 4096
_IN_ERROR = {5, 6}
"""SQE and ERR of enum ib_qp_state."""


class _Resource(IntEnum):
    """More of enum rdma_nldev_attr."""

    SUMMARY = 15
    SUMMARY_ENTRY = 16
    SUMMARY_ENTRY_NAME = 17
    SUMMARY_ENTRY_CURR = 18
    QP = 19
    QP_ENTRY = 20
    STATE = 27
    PID = 28


class QueuePair(msgspec.Struct, frozen=True):
    """Of a process; those of the kernel are left out."""

    thread: int
    """That opened the device: of the process, or any thread of it."""
    port: int | None
    """None: it was not bound to one yet."""
    state: int


class QueuePairs(msgspec.Struct, frozen=True):
    """By thread that opened the device: queue pairs of each port, by the port's key."""

    all: dict[int, Counter[str]]
    in_error: dict[int, Counter[str]]
    blind_to: tuple[str, ...]
    """Devices of which it is not known, with the reason."""


def queue_pairs_of(sysfs: Path) -> QueuePairs:
    """Of the devices in this tree; OSError where the kernel does not tell of them."""
    reason = why_not_kernels(sysfs)
    if reason is not None:
        raise OSError(0, reason)
    kernel = NetlinkSocket(NETLINK_RDMA)
    try:
        # Without a GUID a device cannot be told from another's.
        return queue_pairs(kernel, lambda device: device.guid)
    finally:
        kernel.close()


def queue_pairs(
    kernel: Kernel, key_of: Callable[[RdmaDevice], str | None], most: int = MOST_OF_A_DEVICE
) -> QueuePairs:
    """`key_of` names a device as its ports' keys do; None: it is not one that we watch.

    OSError where the kernel does not answer at all.
    """
    found = QueuePairs({}, {}, ())
    blind: list[str] = []
    for device in RdmaNetlink(kernel).devices():
        key = key_of(device)
        if key is None:
            continue
        try:
            several = _of_device(kernel, device, most)
        except OSError as error:
            blind.append(f"queue pairs of {device.name}: {error.strerror or error}")
            continue
        for pair in several:
            port_number = pair.port or (1 if device.ports == 1 else None)
            if port_number is not None:
                port = f"{key}/{port_number}"
                found.all.setdefault(pair.thread, Counter())[port] += 1
                if pair.state in _IN_ERROR:
                    found.in_error.setdefault(pair.thread, Counter())[port] += 1
    return msgspec.structs.replace(found, blind_to=tuple(blind))


def _of_device(kernel: Kernel, device: RdmaDevice, most: int) -> list[QueuePair]:
    asked = encode_attribute(Attribute.DEV_INDEX, u32(device.index))
    there_are = _count(kernel.ask(RES_GET, asked)[0].payload)
    if there_are > most:
        raise OSError(0, f"there are {there_are}, and each would cost its firmware a command")
    answer = kernel.ask(RES_QP_GET, asked, dump=True)
    return [pair for message in answer for pair in parse_queue_pairs(message.payload)]


def _count(answer: bytes) -> int:
    summary = dict(attributes(answer)).get(_Resource.SUMMARY, b"")
    for kind, entry in attributes(summary):
        told = dict(attributes(entry)) if kind == _Resource.SUMMARY_ENTRY else {}
        if text(told.get(_Resource.SUMMARY_ENTRY_NAME, b"")) == "qp":
            return number(told.get(_Resource.SUMMARY_ENTRY_CURR, b"\0"))
    return 0


def parse_queue_pairs(answer: bytes) -> Iterator[QueuePair]:
    """MalformedError where it is no list of queue pairs."""
    for kind, value in attributes(answer):
        if kind == _Resource.QP:
            for inner, entry in attributes(value):
                if inner == _Resource.QP_ENTRY:
                    yield from _queue_pair(dict(attributes(entry)))


def _queue_pair(told: dict[int, bytes]) -> Iterator[QueuePair]:
    pid, port = told.get(_Resource.PID), told.get(Attribute.PORT_INDEX)
    if pid is not None:
        yield QueuePair(
            thread=number(pid),
            port=None if port is None else number(port),
            state=number(told.get(_Resource.STATE, b"\0")),
        )
