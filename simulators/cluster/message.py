"""Message: what of a fleet goes over NATS, as agents send it."""

from typing import NamedTuple

from flapd.model.fleet import Heartbeat, NodeEvent, encode


class Message(NamedTuple):
    subject: str
    body: bytes
    id: str | None
    """`Nats-Msg-Id`; None: nobody keeps it."""


def event_message(event: NodeEvent) -> Message:
    subject = f"flapd.{_token(event.cluster)}.{_token(event.node)}.{event.kind}"
    return Message(subject, encode(event), event.message_id)


def beat_message(beat: Heartbeat) -> Message:
    subject = f"flapd-heartbeat.{_token(beat.cluster)}.{_token(beat.node)}"
    return Message(subject, encode(beat), None)


def _token(name: str) -> str:
    """Simulated names have no other sign that NATS gives a meaning."""
    return name.replace(".", "%2E")
