"""What passes between the agent and its sampler: one message a datagram.

The socket keeps messages apart (SOCK_SEQPACKET). It is full where the agent does not
keep up: then samples wait and are told together later, and nothing is lost, since
counters go on counting.
"""

import select
import socket
import time
from typing import TypeAlias

import msgspec

from flapd.model.observation import Observation
from flapd.sources.settings import PortsSettings, SamplingSettings

LONGEST_MESSAGE_BYTES = 128 * 1024
GATHER_SECONDS = 0.002
"""The ports of a node are read at the same moment: waking once for all of them is a tenth of the
work, and the stamps of a reading do not depend on when it arrives."""


class LeftBehind(msgspec.Struct, frozen=True):
    """A sampler that could not die, and the devices in whose reads it hangs."""

    pid: int
    started: str
    devices: tuple[str, ...]


class Orders(msgspec.Struct, frozen=True, tag="orders"):
    """What the agent tells its sampler first."""

    sysfs: str
    ring: str
    boot: str
    sampling: SamplingSettings
    ports: PortsSettings
    left_behind: tuple[LeftBehind, ...] = ()


class WatchClosely(msgspec.Struct, frozen=True, tag="closely"):
    """Ports whose witness can't be counted on: their state is read on every fast sweep."""

    keys: frozenset[str]


class Alive(msgspec.Struct, frozen=True, array_like=True, tag="alive"):
    """Nothing to tell, but here."""


Told: TypeAlias = Observation | Alive

_encoder = msgspec.msgpack.Encoder()
_request_decoder = msgspec.msgpack.Decoder(Orders | WatchClosely)
_told_decoder: msgspec.msgpack.Decoder[Told] = msgspec.msgpack.Decoder(Told)


def make_link() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(link: socket.socket, message: Orders | WatchClosely) -> None:
    link.sendall(_encoder.encode(message))


def send_if_room(link: socket.socket, message: Told | WatchClosely) -> bool:
    """Never waits; False where the other has no room now, OSError once it has ended."""
    try:
        link.send(_encoder.encode(message), socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    return True


def receive_request(link: socket.socket) -> Orders | WatchClosely | None:
    """Waits for what the agent wants; None once it has ended."""
    try:
        message = link.recv(LONGEST_MESSAGE_BYTES)
    except ConnectionError:  # it was killed with something of ours unread
        return None
    return _request_decoder.decode(message) if message else None


def receive(link: socket.socket, within_seconds: float) -> list[Told]:
    """Waits for what the sampler tells, and takes what comes with it; empty once it has ended.

    TimeoutError where nothing came for so long.
    """
    waiting = select.poll()
    waiting.register(link, select.POLLIN)
    if not waiting.poll(within_seconds * 1000):
        raise TimeoutError
    time.sleep(GATHER_SECONDS)
    told: list[Told] = []
    while message := _message_waiting(link):
        told.append(_told_decoder.decode(message))
    return told


def _message_waiting(link: socket.socket) -> bytes:
    """Empty where there is none, and at the end."""
    try:
        return link.recv(LONGEST_MESSAGE_BYTES, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return b""
