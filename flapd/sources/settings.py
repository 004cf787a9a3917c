"""What the sources can be told."""

from typing import Annotated

import msgspec

from flapd.model.duration import Duration, parse_duration


class PathsSettings(msgspec.Struct, frozen=True):
    sysfs: str = "/sys"
    proc: str = "/proc"
    state: str = "/var/lib/flapd"
    ring: str = "/run/flapd/ring"
    socket: str = "/run/flapd/flapd.sock"


class SamplingSettings(msgspec.Struct, frozen=True):
    interval: Annotated[Duration, msgspec.Meta(extra={"at_least": "10ms", "at_most": "10s"})] = (
        parse_duration("100ms")
    )
    slow_interval: Annotated[Duration, msgspec.Meta(extra={"at_most": "60s"})] = parse_duration(
        "500ms"
    )
    rare_interval: Annotated[Duration, msgspec.Meta(extra={"at_least": "1s", "at_most": "1h"})] = (
        parse_duration("30s")
    )
    keep: Annotated[Duration, msgspec.Meta(extra={"at_least": "1m", "at_most": "24h"})] = (
        parse_duration("15m")
    )


class PortsSettings(msgspec.Struct, frozen=True):
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
