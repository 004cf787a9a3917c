"""FleetSettings: whom a node tells what it found, and as whom."""

from typing import Annotated

import msgspec

RIGHT_SERVERS = (
    'NATS URLs without a user, such as ["tls://nats1.example:4222", "nats://10.0.0.1:4222"]'
)

_Url = Annotated[str, msgspec.Meta(pattern=r"^(?:nats|tls)://[^/@\s?#]+$", max_length=300)]


class HubSettings(msgspec.Struct, frozen=True):
    """What a hub is told besides the fleet that it is of."""

    topology: str = ""
    """A file that says which switch port is at the other end of each cable; "": there is none."""
    max_drains: Annotated[
        int, msgspec.Meta(ge=0, le=1_000_000, description="a whole number from 0 to 1000000")
    ] = 8
    """Nodes that `healthcheck` may call unhealthy at one time."""


class FleetSettings(msgspec.Struct, frozen=True):
    """Paths are "" where there is none."""

    servers: Annotated[tuple[_Url, ...], msgspec.Meta(description=RIGHT_SERVERS)] = ()
    """Empty: there is no fleet. Any of them will do."""
    cluster: Annotated[
        str,
        msgspec.Meta(
            pattern=r"^[A-Za-z0-9_-]{1,64}$",
            description="a name of 1 to 64 letters, digits, _ and -",
        ),
    ] = "default"
    credentials: str = ""
    """A file of NATS credentials (JWT and seed), or with the seed of a user's nkey."""
    tls_ca: str = ""
    """PEM certificates that servers must show one of; with it, nothing is told without TLS."""
