"""Spec: a fleet of nodes, the jobs on them and what befalls it, as its JSON file says it."""

from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from simulators.errors import SimulatorError
from simulators.fabric.schedule import NotNegative, Positive
from simulators.job.spec import Count, JobSpec

Log = Literal["own", "shared", "none"]
"""A file on each node, one file that all nodes read, or a pipe that nobody can read."""

ORIGIN_UNIX_NS = 1_796_027_531_000_000_000


class _Happening(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"
):
    at_seconds: NotNegative


class Flap(_Happening, frozen=True, omit_defaults=True, tag="flap", kw_only=True):
    """A port goes down; downs of one port are at least 2 s apart."""

    down_seconds: Positive
    node: int
    port: int
    usable_after_seconds: NotNegative = 0.0


class SwitchDown(_Happening, frozen=True, omit_defaults=True, tag="switch_down", kw_only=True):
    """A switch dies and comes back: all ports behind it go, not quite at once."""

    down_seconds: Positive
    switch: str
    """`leaf-POD-RAIL`, the other end of all links of one rail of a pod; or `spine-RAIL`, behind
    which is that rail of all pods."""
    within_seconds: NotNegative = 0.3


class Maintenance(_Happening, frozen=True, omit_defaults=True, tag="maintenance", kw_only=True):
    """Planned work on a node, or on one port of it, that its agent was told of."""

    for_seconds: Positive
    node: int
    port: int | None = None


class Partition(_Happening, frozen=True, tag="partition", kw_only=True):
    """These nodes reach no server: what they tell comes when it is over, and no heartbeat does."""

    for_seconds: Positive
    nodes: tuple[int, ...]


Happening: TypeAlias = Flap | SwitchDown | Maintenance | Partition


class PlacedJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A job on so many nodes in a row; what befalls their ports is no happening of its own."""

    spec: JobSpec
    first_node: int = 0
    log: Log = "own"

    @property
    def nodes(self) -> range:
        return range(self.first_node, self.first_node + self.spec.nodes)


class FleetSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """All jobs begin at second 0; agents look from `watched_from_seconds` on."""

    seed: int = 0
    cluster: str = "default"
    nodes: Count = 128
    ports_per_node: Count = 9
    pod_nodes: Count = 32
    origin_unix_ns: int = ORIGIN_UNIX_NS
    """By a clock that is right."""
    largest_skew_seconds: NotNegative = 0.0
    """By which the clock of a node may be off, either way."""
    watched_from_seconds: NotNegative = 0.0
    jobs: tuple[PlacedJob, ...] = ()
    happenings: tuple[Happening, ...] = ()

    def __post_init__(self) -> None:
        names = [job.spec.job for job in self.jobs]
        if len(set(names)) < len(names):
            raise ValueError("two jobs have one name")
        for job in self.jobs:
            if job.nodes.stop > self.nodes or job.spec.ranks_per_node > self.ports_per_node:
                raise ValueError(f"job {job.spec.job} does not fit on these {self.nodes} nodes")


def read_fleet(path: Path) -> FleetSpec:
    """The fleet in a file; SimulatorError names what is wrong with it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=FleetSpec)
    except OSError as error:
        raise SimulatorError(f"fleet {path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise SimulatorError(f"fleet {path} is not right: {error}") from error
