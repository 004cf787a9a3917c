"""What passes between the agent and a child process of its own.

The socket keeps datagrams apart (SOCK_SEQPACKET). From a child each is an array of messages,
since what waking the agent costs is most of what telling costs. It is full where the agent does
not keep up: then the child waits with what it has, or tells less of it.
"""

import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from flapd.model.times import MILLISECOND_NS

LONGEST_DATAGRAM_BYTES = 128 * 1024
TOGETHER_BYTES = 64 * 1024
"""What is told together is no longer than this, one message that is longer itself excepted."""
HOLD_NS = 400 * MILLISECOND_NS
"""So long may wait what is not urgent."""

_encoder = msgspec.msgpack.Encoder()
_T = TypeVar("_T")


class Outbox:
    """What a child has to tell, gathered into few datagrams; used from all its threads.

    Never waits. OSError once the agent has ended.
    """

    def __init__(self, link: socket.socket, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._link = link
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._send_at_ns = 0
        """When what waits must go."""

    def put(self, message: Any, *, urgent: bool = True) -> bool:
        """It goes with what comes before and after it; False where the agent has no room now."""
        encoded = _encoder.encode(message)
        with self._lock:
            is_full = self._waiting and self._waiting_bytes + len(encoded) > TOGETHER_BYTES
            if is_full and not self._send():
                return False
            if urgent:
                self._send_at_ns = 0
            elif not self._waiting:
                self._send_at_ns = self._now_ns() + HOLD_NS
            self._waiting.append(encoded)
            self._waiting_bytes += len(encoded)
        return True

    def flush(self) -> None:
        """What was put goes now, where any of it may not wait and there is room."""
        with self._lock:
            if self._waiting and self._now_ns() >= self._send_at_ns:
                self._send()

    def _send(self) -> bool:
        try:
            self._link.send(_array_of(self._waiting), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        self._waiting, self._waiting_bytes = [], 0
        return True


def _array_of(encoded: list[bytes]) -> bytes:
    """They as one array of MessagePack: `array 32` and their number, then each."""
    return b"".join((b"\xdd", len(encoded).to_bytes(4, "big"), *encoded))


def make_link() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(link: socket.socket, message: Any) -> None:
    """To a child: one message a datagram."""
    link.sendall(_encoder.encode(message))


def send_if_room(link: socket.socket, message: Any) -> bool:
    """Never waits; False where the child has no room now, OSError once it has ended."""
    try:
        link.send(_encoder.encode(message), socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    return True


def receive_request(link: socket.socket, decoder: "msgspec.msgpack.Decoder[_T]") -> _T | None:
    """Waits for what the agent wants; None once it has ended."""
    try:
        message = link.recv(LONGEST_DATAGRAM_BYTES)
    except ConnectionError:  # it was killed with something of ours unread
        return None
    return decoder.decode(message) if message else None


def receive(
    link: socket.socket, decoder: "msgspec.msgpack.Decoder[list[_T]]", within_seconds: float
) -> list[_T]:
    """Waits for what a child tells, and takes all that is there; empty once it has ended.

    TimeoutError where nothing came for so long.
    """
    waiting = select.poll()
    waiting.register(link, select.POLLIN)
    if not waiting.poll(within_seconds * 1000):
        raise TimeoutError
    told: list[_T] = []
    while datagram := _datagram_waiting(link):
        told += decoder.decode(datagram)
    return told


def _datagram_waiting(link: socket.socket) -> bytes:
    """Empty where there is none, and at the end."""
    try:
        return link.recv(LONGEST_DATAGRAM_BYTES, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return b""
