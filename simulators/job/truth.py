"""Truth: what really hurt the job, and what that cost it by the simulation's own books."""

from pathlib import Path
from typing import Literal

import msgspec

from simulators.errors import SimulatorError

SymptomKind = Literal["stall", "error", "timeout", "heartbeat", "death", "nothing"]
"""What became of it: all waited and went on; or the first that anything told before the end."""
CauseKind = Literal[
    "outage",
    "checkpoint",
    "evaluation",
    "slow_loader",
    "code_hang",
    "out_of_step",
    "died",
    "watchdog_stuck",
]


class Lost(msgspec.Struct, frozen=True):
    """Seconds of every GPU of the job."""

    stall: float = 0.0
    detect: float = 0.0
    propagation: float = 0.0
    restart: float = 0.0
    rework: float = 0.0

    @property
    def seconds(self) -> float:
        return self.stall + self.detect + self.propagation + self.restart + self.rework


class Symptom(msgspec.Struct, frozen=True, kw_only=True):
    """Times are seconds from the origin."""

    kind: SymptomKind
    cause: CauseKind
    happenings: tuple[int, ...]
    """Numbers of those that did it, in the job's spec."""
    begin: float
    """Since then no data moved that should have."""
    end: float
    """Data moves again, in the next attempt where this one ended."""
    told_at: float | None
    """When the first process said anything; None: none did."""
    lost: Lost
    gpu_seconds: float


class Books(msgspec.Struct, frozen=True):
    """Where all GPU-seconds of the job went; they add up to its GPUs times its time."""

    work: float
    """That was kept."""
    start_up: float
    checkpoint: float
    evaluation: float
    waiting: float
    """For a rank that came late."""
    stall: float
    detect: float
    propagation: float
    restart: float
    rework: float


class JobTruth(msgspec.Struct, frozen=True):
    """What happened; `unfelt` are the outages that no rank noticed."""

    job: str
    world_size: int
    begin: float
    end: float
    symptoms: tuple[Symptom, ...]
    unfelt: tuple[int, ...]
    steps: int
    """Done and kept."""
    books: Books


def write_job_truth(truth: JobTruth, path: Path) -> None:
    """By rename, so that who finds the file finds it whole."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(truth)))
        draft.replace(path)
    except OSError as error:
        raise SimulatorError(f"truth {path} cannot be written: {error.strerror}") from error
