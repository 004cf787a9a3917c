"""Spec: a training job and what happens to it, as its JSON file says it."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from simulators.errors import SimulatorError
from simulators.fabric.schedule import NotNegative, Positive
from simulators.job.happenings import Happening, Outage
from simulators.job.releases import (
    SKIP_CLEAN_UP,
    TORN_DOWN,
    Launcher,
    default_ib_timeout,
    default_watchdog_seconds,
    dumps_by_default,
    version,
)

UNIT_SECONDS = 4.096e-6
"""Of the local ACK timeout (InfiniBand Architecture Specification, volume 1)."""
_NEVER_FROM = 32

LinkLayer = Literal["InfiniBand", "Ethernet"]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Phase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All ranks compute, then move data together."""

    compute_seconds: NotNegative
    communicate_seconds: Positive


class Steps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a job does again and again."""

    phases: tuple[Phase, ...] = (Phase(0.5, 0.9), Phase(1.1, 1.85))
    collectives: Count = 8
    """In each phase."""
    jitter: NotNegative = 0.05
    """Share by which computing differs from step to step, and from rank to rank."""
    ahead_seconds: NotNegative = 2.0
    """How far the CPU may enqueue collectives before the GPU gets to them, at most."""


class Pause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All ranks do something else each `every_seconds`."""

    every_seconds: Positive
    pause_seconds: Positive


class Transport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Queue pairs, and how they wait for what was sent to be acknowledged."""

    ib_timeout: int | None = None
    """None: as the release of NCCL has it."""
    retry_cnt: Annotated[int, msgspec.Meta(ge=0, le=7)] = 7
    spread: tuple[float, float] = (1.0, 4.0)
    """A timer fires after so many times its nominal time (IBTA, volume 1: 1 to 4)."""
    first_try_counts: bool = False
    """It gives up after retry_cnt + 1 intervals, else after retry_cnt."""
    adaptive: bool = False
    """mlx5 RoCE: retries after 2, 4, 8 ms and so on (NVIDIA, Adaptive Retransmission)."""
    adaptive_total_seconds: float | None = None
    """What its profile allows in all; None: as much as the nominal timers."""
    queue_pairs: Count = 4
    """To each neighbour."""


class Software(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Whose habits decide how an error ends a job; None: the release's own."""

    torch: str = "2.8.0"
    nccl: str = "2.27.3"
    launcher: Launcher = "torchrun"
    watchdog_seconds: float | None = None
    error_handling: int | None = None
    dumps: bool | None = None
    nccl_debug: Literal["", "VERSION", "WARN", "INFO"] = "WARN"

    @property
    def torch_version(self) -> tuple[int, ...]:
        return version(self.torch)

    @property
    def nccl_version(self) -> tuple[int, ...]:
        return version(self.nccl)

    @property
    def group_timeout_seconds(self) -> float:
        if self.watchdog_seconds is not None:
            return self.watchdog_seconds
        return default_watchdog_seconds(self.torch_version)

    @property
    def handling(self) -> int:
        if self.error_handling is not None:
            return self.error_handling
        return TORN_DOWN if self.launcher == "torchrun" else SKIP_CLEAN_UP

    @property
    def is_dumping(self) -> bool:
        return dumps_by_default(self.torch_version) if self.dumps is None else self.dumps


class JobSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """A job of `nodes` x `ranks_per_node` GPUs, each rank behind the port of its number.

    The ranks of one number form a ring over the nodes.
    """

    seed: int = 0
    job: str = "4711"
    nodes: Annotated[int, msgspec.Meta(ge=2)] = 128
    ranks_per_node: Count = 8
    link_layer: LinkLayer = "InfiniBand"
    duration_seconds: Positive = 600.0
    start_up_seconds: NotNegative = 30.0
    """From the processes' start to the first step."""
    restart_seconds: NotNegative = 300.0
    """From the end of the last process to the first step of the next attempt."""
    restarts: Annotated[int, msgspec.Meta(ge=0)] = 100
    operator_seconds: Positive = 7200.0
    """Until somebody ends a job that nothing else ends."""
    steps: Steps = Steps()
    transport: Transport = Transport()
    software: Software = Software()
    checkpoint: Pause | None = None
    evaluation: Pause | None = None
    happenings: tuple[Happening, ...] = ()

    def __post_init__(self) -> None:
        for happening in self.happenings:
            if isinstance(happening, Outage):
                known = happening.node < self.nodes
            else:
                known = happening.rank < self.world_size
            if not known:
                raise ValueError(f"{happening} is not of this job's {self.nodes} nodes")

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def ib_timeout(self) -> int:
        if self.transport.ib_timeout is not None:
            return self.transport.ib_timeout
        return default_ib_timeout(self.software.nccl_version)

    @property
    def tick_seconds(self) -> float | None:
        """The nominal timer; None: it never fires."""
        timeout = self.ib_timeout
        return UNIT_SECONDS * float(2**timeout) if 0 < timeout < _NEVER_FROM else None

    def node_of(self, rank: int) -> int:
        return rank // self.ranks_per_node

    def rank_of(self, node: int, port: int) -> int:
        return node % self.nodes * self.ranks_per_node + port


def read_job(path: Path) -> JobSpec:
    """The job in a file; SimulatorError names what is wrong with it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=JobSpec)
    except OSError as error:
        raise SimulatorError(f"job {path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise SimulatorError(f"job {path} is not right: {error}") from error
