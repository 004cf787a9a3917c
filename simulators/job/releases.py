"""Releases: what versions of NCCL, PyTorch and launchers do from an error to the job's end.

NCCL: its user guide, release notes and src/transport/net_ib by release. PyTorch:
ProcessGroupNCCL.cpp and .hpp, torch/distributed/elastic by release.
"""

from typing import Literal, TypeAlias

Launcher: TypeAlias = Literal["torchrun", "slurm", "slurm-kill-on-bad-exit"]
Version: TypeAlias = tuple[int, ...]

TORN_DOWN, SKIP_CLEAN_UP = 1, 3
"""TORCH_NCCL_ASYNC_ERROR_HANDLING as torchrun sets it, and the library's own default."""


def version(written: str) -> Version:
    return tuple(int(number) for number in written.partition("+")[0].split("."))


def default_ib_timeout(nccl: Version) -> int:
    if nccl < (2, 14):
        return 14
    return 18 if nccl < (2, 23) else 20


def hands_errors_on(nccl: Version) -> bool:
    """2.18 never tells the framework of a network error."""
    return not (2, 18, 1) <= nccl < (2, 19)


def default_watchdog_seconds(torch: Version) -> float:
    return 600.0 if torch >= (2, 2) else 1800.0


def poll_seconds(torch: Version) -> float:
    return 0.1 if torch >= (2, 2) else 1.0


def heartbeat_seconds(torch: Version) -> float | None:
    """None: nobody watches the watchdog."""
    if torch < (2, 2):
        return None
    if torch < (2, 3):
        return 120.0
    return 600.0 if torch < (2, 5) else 480.0


def dumps_by_default(torch: Version) -> bool:
    return torch >= (2, 7)


def dump_wait_seconds(torch: Version, *, dumps: bool, share: float) -> float:
    """From an error until the rank aborts; `share` (0 to 1) is how long its dump takes.

    Since 2.8 four times 15 s, whether or not the dump is done (pull request 150652).
    """
    if torch >= (2, 8):
        return 60.0
    return 60.0 * share if dumps and torch >= (2, 5) else 0.0


def tells_others(torch: Version, *, dumps: bool) -> bool:
    """Through the store: others dump as well, and end themselves a heartbeat later."""
    return dumps and torch >= (2, 5)


COORDINATION_SECONDS = 1.0
"""How often a rank looks whether another asks it to dump (TORCH_NCCL_COORD_CHECK_MILSEC)."""

KEEP_ALIVE_SECONDS = (5.0, 15.0)
"""Until the agents of other nodes know of an end (keep-alive of torchrun's rendezvous: 3 x 5 s)."""

LOCAL_KILL_SECONDS = (0.1, 1.0)
"""Until the launcher has ended the other ranks of the same node (monitor interval 0.1 s)."""

TERM_TO_KILL_SECONDS = 30.0
"""For those that do not go at once."""
