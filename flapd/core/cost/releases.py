"""Releases: what each NCCL, PyTorch and launcher does from the first error to the job's death.

NCCL: its user guide and src/transport/net_ib by release. PyTorch: ProcessGroupNCCL.cpp, .hpp and
torch/distributed/elastic by release, 1.13 to 2.9.
"""

import math
import re
from collections.abc import Sequence
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace

from flapd.core.cost.inputs import Inputs
from flapd.model.errors import FlapdError
from flapd.model.given import Given, exactly

Launcher = Literal["torchrun", "slurm", "slurm-kill-on-bad-exit"]

Release = tuple[int, ...]


class Nccl(msgspec.Struct, frozen=True):
    since: Release
    ib_timeout: int = 20
    hands_on_errors: bool = True
    """The framework is told of a network error; else only its watchdog ends the job."""


NCCL: tuple[Nccl, ...] = (
    Nccl((0,), ib_timeout=14),
    Nccl((2, 14), ib_timeout=18),
    Nccl((2, 18, 1), ib_timeout=18, hands_on_errors=False),
    Nccl((2, 19), ib_timeout=18),
    Nccl((2, 23)),
)


class Torch(msgspec.Struct, frozen=True):
    """Seconds, as its defaults are."""

    since: Release
    watchdog: float
    poll: float
    dump_wait: tuple[float, float, float]
    """Shortest, usual and longest wait for the flight recorder's dump before a rank ends."""
    heartbeat: float
    """Longest that a rank which did not see the error waits besides; 0 = there is no monitor."""


TORCH: tuple[Torch, ...] = (
    Torch((0,), watchdog=1800, poll=1.0, dump_wait=(0, 0, 0), heartbeat=0),
    Torch((2, 2), watchdog=600, poll=0.1, dump_wait=(0, 0, 0), heartbeat=120),
    Torch((2, 3), watchdog=600, poll=0.1, dump_wait=(0, 0, 0), heartbeat=600),
    # Dumping is off until 2.7, where it waits for the dump's end.
    Torch((2, 5), watchdog=600, poll=0.1, dump_wait=(0, 0, 60), heartbeat=480),
    Torch((2, 7), watchdog=600, poll=0.1, dump_wait=(0, 15, 60), heartbeat=480),
    # Four times 15 s, whether or not the dump is done (PyTorch pull request 150652).
    Torch((2, 8), watchdog=600, poll=0.1, dump_wait=(60, 60, 60), heartbeat=480),
)

COORDINATION_SECONDS = 1.0
"""How often ranks look for the dump signal (TORCH_NCCL_COORD_CHECK_MILSEC)."""

KILL_SECONDS = 30.0
"""From SIGTERM to SIGKILL, by torchrun as by Slurm (KillWait)."""
KEEP_ALIVE_SECONDS = 3 * 5.0
"""Until torchrun's other nodes know (rendezvous keep-alive)."""

NO_ERROR_HANDLING = 0
"""TORCH_NCCL_ASYNC_ERROR_HANDLING: nothing ends the job; torchrun sets 1, without it 3 holds, and
either ends the process."""


class Releases(msgspec.Struct, frozen=True):
    """What a job runs on, as far as it is known."""

    nccl: str | None = None
    torch: str | None = None
    launcher: Launcher | None = None
    error_handling: int | None = None


def with_releases(inputs: Inputs, releases: Releases) -> Inputs:
    """The inputs, where nobody said otherwise, as these releases have them."""
    if releases.nccl is not None:
        inputs = _with_nccl(inputs, _of(NCCL, releases.nccl))
    if releases.torch is not None:
        inputs = _with_torch(inputs, _of(TORCH, releases.torch))
    if releases.launcher is not None:
        inputs = _with_launcher(inputs, releases.launcher)
    if releases.error_handling == NO_ERROR_HANDLING:
        never = exactly(math.inf, "environment")
        inputs = replace(inputs, watchdog_seconds=never, coordinated=exactly(False, "environment"))
    return inputs


def _with_nccl(inputs: Inputs, nccl: Nccl) -> Inputs:
    return replace(
        inputs,
        ib_timeout=_unless_said(inputs.ib_timeout, exactly(nccl.ib_timeout, "version")),
        coordinated=_unless_said(inputs.coordinated, exactly(nccl.hands_on_errors, "version")),
    )


def _with_torch(inputs: Inputs, torch: Torch) -> Inputs:
    shortest, usual, longest = torch.dump_wait
    propagation = Given(
        value=usual + COORDINATION_SECONDS,
        low=shortest,
        high=longest + COORDINATION_SECONDS + torch.heartbeat,
        source="version",
    )
    return replace(
        inputs,
        watchdog_seconds=_unless_said(inputs.watchdog_seconds, exactly(torch.watchdog, "version")),
        poll_seconds=_unless_said(
            inputs.poll_seconds, Given(torch.poll, 0.0, torch.poll, "version")
        ),
        propagation_seconds=_unless_said(inputs.propagation_seconds, propagation),
    )


def _with_launcher(inputs: Inputs, launcher: Launcher) -> Inputs:
    wait = inputs.propagation_seconds
    if wait.source not in ("version", "default"):
        return inputs
    later = replace(wait, high=wait.high + _last_rank_seconds(inputs, launcher))
    return replace(inputs, propagation_seconds=later)


def _last_rank_seconds(inputs: Inputs, launcher: Launcher) -> float:
    """Longest from a rank's end to that of the last."""
    if launcher == "torchrun":
        return KILL_SECONDS + KEEP_ALIVE_SECONDS
    if launcher == "slurm-kill-on-bad-exit":
        return KILL_SECONDS
    # Tasks run on until they meet an error of their own.
    return inputs.watchdog_seconds.high


_T = TypeVar("_T")


def _unless_said(given: Given[_T], instead: Given[_T]) -> Given[_T]:
    return instead if given.source == "default" else given


_Row = TypeVar("_Row", Nccl, Torch)

_WRITTEN = re.compile(r"v?(\d{1,4}(?:\.\d{1,9}){1,3})\b", re.ASCII)


def release(written: str) -> Release:
    """`2.27.5+cuda12.9` as numbers; FlapdError where it is no version."""
    found = _WRITTEN.match(written.strip())
    if found is None:
        raise FlapdError(f"{written}: a version such as 2.27.5 would be right")
    return tuple(map(int, found[1].split(".")))


def _of(rows: Sequence[_Row], written: str) -> _Row:
    """The last that is not newer."""
    wanted = release(written)
    return [row for row in rows if row.since <= wanted][-1]
