"""NetlinkSocket: asks a part of the kernel and takes its answer.

A request is carried out while it is sent: where the driver behind it waits for dead
firmware, `ask` hangs as a read of sysfs does. Only waiting for an answer is bounded.
"""

import os
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from errno import EINTR, EMSGSIZE, ETIMEDOUT
from typing import Protocol

from flapd.model.times import SECOND_NS
from flapd.sources.netlink_codec import (
    DONE,
    DUMP,
    DUMP_INTERRUPTED,
    ERROR,
    FIRST_OWN_KIND,
    MULTI,
    REQUEST,
    MalformedError,
    Message,
    encode_message,
    messages,
)

NETLINK_GENERIC = 16
NETLINK_RDMA = 20
"""include/uapi/linux/netlink.h; the socket module has no names for them."""

_SOL_NETLINK = 270
_ADD_MEMBERSHIP = 1
_KERNEL = 0
_LONGEST_DATAGRAM_BYTES = 32 * 1024
"""The kernel fills no more (net/netlink/af_netlink.c: netlink_recvmsg)."""
_PATIENCE_NS = SECOND_NS // 20
"""For each part of an answer, and twice, since what comes last may be none. It is there when a
request was carried out."""
_PATIENCE = struct.pack("@ll", 0, _PATIENCE_NS // 1000)


class Kernel(Protocol):
    """Who answers."""

    def ask(self, kind: int, payload: bytes = b"", *, dump: bool = False) -> list[Message]: ...
    def close(self) -> None: ...


class NetlinkSocket:
    """Used from one thread at a time. All that goes wrong is an OSError.

    EPROTONOSUPPORT: this kernel has no such part.
    """

    def __init__(self, protocol: int) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol
        )
        try:
            self._socket.bind((0, 0))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _PATIENCE)
        except OSError:
            self._socket.close()
            raise
        self._sequence = 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def join(self, group: int) -> None:
        """What the kernel tells this group comes by `waiting`."""
        self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)

    def ask(self, kind: int, payload: bytes = b"", *, dump: bool = False) -> list[Message]:
        """The answer: one message, or all of a dump; TimeoutError where none comes."""
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        flags = REQUEST | DUMP if dump else REQUEST
        self._socket.send(encode_message(kind, flags, self._sequence, payload))
        until_ns = time.monotonic_ns() + _PATIENCE_NS
        told: list[Message] = []
        while True:  # once at least, however long ago that was
            news = [each for each in self._received(0) if each.sequence == self._sequence]
            told += news
            if (answer := answer_in(told)) is not None:
                return answer
            now_ns = time.monotonic_ns()
            if news:  # each part of a dump asks the firmware anew
                until_ns = now_ns + _PATIENCE_NS
            elif now_ns >= until_ns:
                raise _error(ETIMEDOUT)

    def waiting(self) -> list[Message]:
        """What the kernel told a group meanwhile; never waits.

        ENOBUFS where it told more than there was room for: then everything may have changed.
        """
        told: list[Message] = []
        with suppress(BlockingIOError):
            while True:
                told += self._received(socket.MSG_DONTWAIT)
        return told

    def _received(self, flags: int) -> Iterator[Message]:
        """Of the next datagram; none where it is not the kernel's: anybody may send to us."""
        try:
            datagram, _, told, sender = self._socket.recvmsg(_LONGEST_DATAGRAM_BYTES, 0, flags)
        except BlockingIOError:
            if flags & socket.MSG_DONTWAIT:
                raise
            raise _error(ETIMEDOUT) from None
        if sender[0] != _KERNEL:
            return iter(())
        if told & socket.MSG_TRUNC:
            raise _error(EMSGSIZE)
        return messages(datagram)


def answer_in(told: Iterable[Message]) -> list[Message] | None:
    """What was asked for; None where its end is still to come, OSError where it is a refusal."""
    answer: list[Message] = []
    for message in told:
        if message.flags & DUMP_INTERRUPTED:
            raise _error(EINTR)  # what was asked for changed meanwhile
        if message.kind in {ERROR, DONE}:
            if message.error:
                raise _error(message.error)
            return answer
        if message.kind < FIRST_OWN_KIND:
            raise MalformedError(f"a message of kind {message.kind}")
        answer.append(message)
        if not message.flags & MULTI:
            return answer
    return None


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
