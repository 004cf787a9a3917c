"""Body: an event as the history keeps it.

What is told of ports is JSON, as ever. What is told of jobs is MessagePack: a timeout may be
infinite, and JSON has no such number.
"""

from typing import Any, TypeVar

import msgspec

from flapd.model.event import Event, Outage, PortChange

_JSON_KINDS = ("flap", "port")
_JSON: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Event)
_MSGPACK: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Event)

_T = TypeVar("_T")


def kind_of(event: Event) -> str:
    return str(event.__struct_config__.tag)


def encoded_event(event: Event) -> bytes:
    if isinstance(event, Outage | PortChange):
        return msgspec.json.encode(event)
    return msgspec.msgpack.encode(event)


def decoded_event(kind: str, body: bytes) -> Event:
    decoder = _JSON if kind in _JSON_KINDS else _MSGPACK
    event: Event = decoder.decode(body)
    return event


def decoded_as(kind: type[_T], body: bytes) -> _T:
    """A body of which it is known what it is."""
    if kind is Outage:
        return msgspec.json.decode(body, type=kind)
    return msgspec.msgpack.decode(body, type=kind)
