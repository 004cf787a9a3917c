"""What the sources can be told."""

from typing import Annotated, Literal

import msgspec

from flapd.model.duration import Duration, parse_duration

_Ports = Annotated[int, msgspec.Meta(ge=0, le=1024)]
_Rate = Annotated[float, msgspec.Meta(gt=0, le=100_000)]


class PathsSettings(msgspec.Struct, frozen=True):
    sysfs: str = "/sys"
    proc: str = "/proc"
    state: str = "/var/lib/flapd"
    ring: str = "/run/flapd/ring"
    socket: str = "/run/flapd/flapd.sock"
    dev: str = "/dev"


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
    black_box: Annotated[Duration, msgspec.Meta(extra={"at_most": "5m"})] = parse_duration("30s")
    """Samples are kept so long before and after an outage."""


class PortsSettings(msgspec.Struct, frozen=True):
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    virtual_functions: bool = False
    expect: Annotated[
        _Ports | None, msgspec.Meta(description="a number of ports from 0 to 1024")
    ] = None
    """How many ports this node should have; None = as many as it had."""
    expect_rate_gbps: Annotated[
        _Rate | None, msgspec.Meta(description="a rate in Gb/s, such as 400")
    ] = None
    """How fast each should be; None = as its siblings are."""


Switch = Literal["auto", "on", "off"]
"""`on` fails the start where the source cannot work; `auto` goes without it, and says why."""


OFF = "off by configuration"


class SourcesSettings(msgspec.Struct, frozen=True):
    """What is used besides sysfs, which alone is enough."""

    rdma_netlink: Switch = "auto"
    rtnetlink: Switch = "auto"
    verbs: Switch = "auto"
    """On auto only for devices that can be removed while somebody holds a context on them."""
    ethtool: Switch = "auto"
    kernel_log: Switch = "auto"


class LogsSettings(msgspec.Struct, frozen=True):
    """Which logs of jobs are read."""

    paths: tuple[str, ...] = ()
    from_start: bool = False
    """Also what is in them already."""
    discover: bool = True
    """What ranks have open as standard output, standard error and NCCL_DEBUG_FILE; pod logs."""
    journal: bool = False


class DumpsSettings(msgspec.Struct, frozen=True):
    """Which dumps of flight recorders are read."""

    paths: tuple[str, ...] = ()


class JobsSettings(msgspec.Struct, frozen=True):
    """How jobs are found."""

    discover: bool = True
    every: Annotated[Duration, msgspec.Meta(extra={"at_least": "1s", "at_most": "1h"})] = (
        parse_duration("10s")
    )
