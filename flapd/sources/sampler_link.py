"""What passes between the agent and its sampler.

The socket keeps datagrams apart (SOCK_SEQPACKET). To the sampler each is one request;
from it each is all that there is to tell, since what waking the agent costs is most of
what flapd costs. What tells of a link goes at once; what says that nothing happened to
it may wait a moment, and stamps do not depend on when they arrive. The socket is full
where the agent does not keep up: then samples wait and are told together later, and
nothing is lost, since counters go on counting.
"""

import socket
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from flapd.model.observation import Observation
from flapd.sources import child_link
from flapd.sources.child_link import HOLD_NS, TOGETHER_BYTES, Outbox, make_link, send
from flapd.sources.read_health import ReadHealth
from flapd.sources.settings import OFF, PortsSettings, SamplingSettings, SourcesSettings

__all__ = [
    "HOLD_NS",
    "TOGETHER_BYTES",
    "LeftBehind",
    "Orders",
    "Outbox",
    "ReadNow",
    "SourcesHeard",
    "Told",
    "WatchClosely",
    "make_link",
    "receive",
    "receive_request",
    "send",
]


def all_off() -> dict[str, str]:
    return dict.fromkeys(SourcesSettings.__struct_fields__, OFF)


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
    known_up: frozenset[str] = frozenset()
    """Ports that were up at some time: the others are only listed until they are."""
    dev: str = "/dev"
    silent: Mapping[str, str] = msgspec.field(default_factory=all_off)
    """Which of the kernel's sources besides sysfs are not to be used, and why."""
    holds_any_driver: bool = False
    """Devices are held for verbs events even where their drivers cannot let go of them."""


class WatchClosely(msgspec.Struct, frozen=True, tag="closely"):
    """Ports whose witness can't be counted on: their state is read on every fast sweep."""

    keys: frozenset[str]


class ReadNow(msgspec.Struct, frozen=True, tag="now"):
    """Something happened to these ports, it seems: they are read at once."""

    keys: frozenset[str]


class SourcesHeard(msgspec.Struct, frozen=True, array_like=True, tag="sources"):
    """Which of the kernel's sources tell of each device, told whenever that changes."""

    by_device: dict[str, dict[str, str]]
    """Name of the source -> "on", or why it tells nothing."""


Request: TypeAlias = Orders | WatchClosely | ReadNow
Told: TypeAlias = Observation | ReadHealth | SourcesHeard
"""How reading went is told every second, and says that the sampler is there."""

_request_decoder: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_told_decoder: msgspec.msgpack.Decoder[list[Told]] = msgspec.msgpack.Decoder(list[Told])


def receive_request(link: socket.socket) -> Request | None:
    """Waits for what the agent wants; None once it has ended."""
    return child_link.receive_request(link, _request_decoder)


def receive(link: socket.socket, within_seconds: float) -> list[Told]:
    """What the sampler tells; empty once it has ended. TimeoutError where nothing came."""
    return child_link.receive(link, _told_decoder, within_seconds)
