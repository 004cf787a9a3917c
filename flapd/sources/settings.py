"""What the sources can be told."""

import msgspec

from flapd.model.duration import Duration, parse_duration


class PathsSettings(msgspec.Struct, frozen=True):
    sysfs: str = "/sys"
    proc: str = "/proc"
    state: str = "/var/lib/flapd"
    ring: str = "/run/flapd/ring"
    socket: str = "/run/flapd/flapd.sock"


class SamplingSettings(msgspec.Struct, frozen=True):
    interval: Duration = parse_duration("100ms")
    slow_interval: Duration = parse_duration("500ms")
    rare_interval: Duration = parse_duration("30s")
    keep: Duration = parse_duration("15m")


class PortsSettings(msgspec.Struct, frozen=True):
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
