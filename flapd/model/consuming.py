"""Consuming: how reading the fleet's stream goes."""

import msgspec


class Position(msgspec.Struct, frozen=True):
    """Up to here the stream has been taken."""

    created: str = ""
    """When the stream was made, as its server writes it: another one begins anew at 1."""
    seq: int = 0
    unix_ns: int = 0
    """When the last of it came to the stream, by its server's clock."""


class Consuming(msgspec.Struct):
    """Counts only rise while the hub runs."""

    connected: bool = False
    server: str | None = None
    """Where it is connected, or was last."""
    reason: str = "not connected yet"
    """Why it is not connected, or why nothing can be read there; else empty."""
    events: dict[str, int] = msgspec.field(default_factory=dict)
    """Taken, by kind, with those that were taken before."""
    refused: int = 0
    """Messages that are none of ours, or not of the node under whose name they came."""
    missed: int = 0
    """Messages that the stream let go of before they were read."""
    waiting: int | None = None
    """Messages in the stream that are still to be taken; None: not known."""
    taken_until_unix_ns: int | None = None
    """When the last message that was taken came to the stream, by its server's clock."""
