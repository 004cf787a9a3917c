"""What serving can be told: where, to whom, and which counters."""

import re
from typing import Annotated, Literal, TypeAlias

import msgspec

from flapd.core.cost.settings import CostSettings, JobSettings

RIGHT_LISTEN = (
    'an address and a port from 0 to 65535, such as "0.0.0.0:19315" or "[::]:19315", '
    'or "" for the Unix socket only'
)

DEFAULT_PORT = 19315

_WRITTEN = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})")


class HttpSettings(msgspec.Struct, frozen=True):
    """Paths are "" where there is none."""

    listen: str = f"0.0.0.0:{DEFAULT_PORT}"
    open: bool = False
    """Everybody may read everything, what belongs to jobs as well."""
    token_file: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    client_ca: str = ""


class Prices(msgspec.Struct, frozen=True):
    """What the price of a flap is made of where a question does not say."""

    job: JobSettings = JobSettings()
    cost: CostSettings = CostSettings()


USUAL_PRICES = Prices()

CounterChoice: TypeAlias = Literal["errors", "all"] | tuple[str, ...]


class MetricsSettings(msgspec.Struct, frozen=True):
    counters: Annotated[
        CounterChoice,
        msgspec.Meta(
            description='"errors", "all" or a list of globs such as ["link_downed", "*retrans*"]'
        ),
    ] = "errors"
    """Which counters of the ports are exported."""


def parse_listen(written: str) -> tuple[str, int] | None:
    """Host and port; None = the Unix socket only. Raises ValueError saying what would be right."""
    if not written:
        return None
    parts = _WRITTEN.fullmatch(written)
    if parts is None or int(parts[3]) > 65535:
        raise ValueError(RIGHT_LISTEN)
    return parts[1] or parts[2], int(parts[3])
