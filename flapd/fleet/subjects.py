"""Subjects: where in NATS a node tells what; a server's permissions are bound to them.

A name becomes one token by percent-encoding, of dots as well: what NATS gives a meaning
(`.`, `*`, `>`, blanks) cannot stand in one
(https://docs.nats.io/nats-concepts/subjects, "Characters allowed and recommended").
"""

from typing import NamedTuple
from urllib.parse import quote, unquote

from flapd.model.fleet import FleetMessageError

EVENTS = "flapd"
HEARTBEATS = "flapd-heartbeat"
"""Beside the events and not below them: the stream keeps no heartbeat."""


class Origin(NamedTuple):
    """Whose message it is, by the subject, which is all that a server watches over."""

    cluster: str
    node: str


def event_subject(cluster: str, node: str, kind: str) -> str:
    return f"{EVENTS}.{token(cluster)}.{token(node)}.{kind}"


def heartbeat_subject(cluster: str, node: str) -> str:
    return f"{HEARTBEATS}.{token(cluster)}.{token(node)}"


def heartbeats_of(cluster: str) -> str:
    """Of all its nodes."""
    return f"{HEARTBEATS}.{token(cluster)}.*"


def inbox_prefix(cluster: str, node: str) -> str:
    """Where answers to a node go, which no other may read."""
    return f"_INBOX.flapd.{token(cluster)}.{token(node)}"


def token(name: str) -> str:
    """No two names have the same."""
    return quote(name, safe="").replace(".", "%2E")


def origin_of(subject: str) -> Origin:
    """Of an event or a heartbeat; FleetMessageError where the subject is neither."""
    root, *names = subject.split(".")
    if (root, len(names)) not in ((EVENTS, 3), (HEARTBEATS, 2)):
        raise FleetMessageError(f"{subject!r} is no subject of flapd's")
    return Origin(unquote(names[0]), unquote(names[1]))
