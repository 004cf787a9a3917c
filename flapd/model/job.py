"""Job: a training job as one node knows it, and what of it is on this node."""

from typing import Any, Literal

import msgspec

from flapd.model.given import Given

JobKind = Literal["training", "elastic", "inference"]
PortUse = Literal["queue_pair", "log", "traffic", "configuration"]
"""Who says that a job uses a port."""


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a job on this node."""

    rank: int | None
    """In the whole job; None: nothing says which."""
    pid: int
    """As the agent sees it."""
    inner_pid: int | None = None
    """Inside its own container, as its log lines have it; None: the same."""
    local_rank: int | None = None
    host: str | None = None
    """As its own log lines call it."""
    started_unix_ns: int


class ReadFile(msgspec.Struct, frozen=True):
    """A configuration file of a job."""

    path: str
    text: str | None
    """None: it could not be read. A file that is not there has no text to set anything: ""."""


class JobFound(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at this node's processes tells of one job; nothing in it is interpreted."""

    job: str
    """The scheduler's id, else one made of its first process."""
    scheduler: str | None
    """`slurm`, `kubernetes`, `torchrun`, `mpi`; None: started by hand."""
    ranks: tuple[Rank, ...]
    world_size: int | None
    gpus: int | None
    """On this node; None: not known."""
    ports: dict[str, PortUse]
    """Keys of ports it is known to use."""
    queue_pairs_in_error: dict[str, int]
    """By port key."""
    environment: dict[str, str] | None
    """Of its lowest rank, as far as it may be kept; None: it could not be read."""
    conf_files: tuple[ReadFile, ...]
    torch: str | None = None
    nccl: str | None = None
    """Releases by the libraries mapped, where their names tell."""
    blind_to: tuple[str, ...] = ()
    """What of it cannot be seen, in words: a log that is a pipe, an environment."""


class Job(msgspec.Struct, frozen=True, kw_only=True, tag="job"):
    """What may be told of a job; a higher revision replaces a lower."""

    id: str
    revision: int
    node: str
    job: str
    kind: JobKind
    world_size: Given[int] | None
    local_ranks: tuple[int, ...]
    gpus: int
    """On this node."""
    ports: dict[str, PortUse]
    """By port key."""
    since_unix_ns: int
    until_unix_ns: int | None
    """None: it runs."""
    policy: dict[str, Given[Any]]
    """Every timeout in force by the name of its input (core/cost/inputs.py)."""
    remarks: tuple[str, ...] = ()
    """What is odd about them, in sentences."""
    blind_to: tuple[str, ...] = ()
    stalls_seen_since_unix_ns: int | None = None
    """Since when its traffic here would show a stall; None: it would not."""
    shortest_stall_seconds: float | None = None
    """The shortest that would show."""
    traffic_unseen_unix_ns: tuple[tuple[int, int], ...] = ()
    """From when to when nobody saw its traffic here, though before and after; the newest last."""
    traffic_since_unix_ns: int | None = None
    """Its first traffic here; None: there was none yet, or some before anybody looked."""
