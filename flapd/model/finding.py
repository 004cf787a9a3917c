"""Findings: what a line of a log may tell besides a fault."""

from typing import Literal, TypeAlias

import msgspec

from flapd.model.fault import Fault


class Setting(msgspec.Struct, frozen=True, tag="setting"):
    """A value in force, as the library itself printed it."""

    name: str
    """Of the environment variable, or "nccl", "torch" and "group_timeout_ms"."""
    value: str
    host: str | None = None
    pid: int | None = None
    rank: int | None = None
    process_group: str | None = None


class Member(msgspec.Struct, frozen=True, tag="member"):
    """A process and its place in a communicator."""

    host: str | None
    pid: int | None
    rank: int
    ranks: int
    cuda: int | None
    nvml: int | None
    bus: str | None
    communicator: str | None


class Network(msgspec.Struct, frozen=True, tag="network"):
    """What NCCL sends through: its HCAs with port and link layer, or none of them."""

    host: str | None
    pid: int | None
    hcas: tuple[str, ...]
    """Such as "mlx5_0:1/IB"; empty: TCP sockets."""


class Step(msgspec.Struct, frozen=True, tag="step"):
    """Progress of the training, printed by one rank of all."""

    framework: str
    number: int | None
    seconds: float | None
    """Of one step, or the mean of those since the last such line; None: the line has no time."""
    time_ns: int | None
    clock_error_ns: int
    rank: int | None = None
    """Who printed it; None: the line does not say."""


class PlannedPause(msgspec.Struct, frozen=True, tag="pause"):
    """A rank says that it saves or evaluates, or has just done so: then traffic may stand still."""

    what: Literal["checkpoint", "evaluation"]
    time_ns: int | None
    clock_error_ns: int


class DumpWritten(msgspec.Struct, frozen=True, tag="dump_written"):
    """A process says where its flight recorder's dump is."""

    file: str
    rank: int | None


Note: TypeAlias = Setting | Member | Network | Step | PlannedPause | DumpWritten
Finding: TypeAlias = Fault | Note

NoteKind = Literal[
    "setting",
    "settings",
    "member",
    "network",
    "step",
    "checkpoint",
    "evaluation",
    "dump_written",
]
