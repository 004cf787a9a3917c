"""LinkReading: what one sample says of the link."""

import msgspec

from flapd.model.event import Layer


class LinkReading(msgspec.Struct, frozen=True):
    """None = not read this time.

    Of a message that came unasked nothing tells from when on it may be: `before_ns` is 0.
    """

    before_ns: int
    after_ns: int
    witness: int | None = None
    up: bool | None = None
    down_layer: Layer | None = None
    """Of a down seen in the state: which layer is down; None where that cannot be told."""
    admin: bool = False
    """It is down because somebody on this node switched it off."""
    first: bool = False
    """Nobody read the port since the last reading: what happened meanwhile, happened unwatched."""
    rate_mbps: int | None = None
    """Of a port that is up."""
    told_by: str | None = None
    """The source whose message it is; None: it was read."""
