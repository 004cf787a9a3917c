"""What passes between the agent and its sampler: one message a datagram.

The socket keeps messages apart (SOCK_SEQPACKET). It is full where the agent does not
keep up: then samples wait and are told together later, and nothing is lost, since
counters go on counting.
"""

import socket

import msgspec

from flapd.model.observation import Observation
from flapd.sources.settings import PortsSettings, SamplingSettings

LONGEST_MESSAGE_BYTES = 128 * 1024


class Orders(msgspec.Struct, frozen=True):
    """What the agent tells its sampler, once, first."""

    sysfs: str
    ring: str
    boot: str
    sampling: SamplingSettings
    ports: PortsSettings


_encoder = msgspec.msgpack.Encoder()
_orders_decoder = msgspec.msgpack.Decoder(Orders)
_observation_decoder: msgspec.msgpack.Decoder[Observation] = msgspec.msgpack.Decoder(Observation)


def make_link() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send_orders(link: socket.socket, orders: Orders) -> None:
    link.sendall(_encoder.encode(orders))


def receive_orders(link: socket.socket) -> Orders:
    return _orders_decoder.decode(link.recv(LONGEST_MESSAGE_BYTES))


def send(link: socket.socket, observation: Observation) -> None:
    """Waits until the agent has room."""
    link.sendall(_encoder.encode(observation))


def send_if_room(link: socket.socket, observation: Observation) -> bool:
    """Never waits; False where the agent has no room now."""
    try:
        link.send(_encoder.encode(observation), socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    return True


def receive(link: socket.socket) -> Observation | None:
    """Waits for the next observation; None once the sampler has ended."""
    message = link.recv(LONGEST_MESSAGE_BYTES)
    return _observation_decoder.decode(message) if message else None
