"""What the kernel counted for a process (proc(5)), and where files cost no disk."""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

_NANOSECONDS_A_SECOND = 1_000_000_000


class Usage(msgspec.Struct, frozen=True):
    seconds: float
    """Of the clock on the wall."""
    cpu_seconds: float
    reads: int
    """Read system calls: on files, not on sockets."""

    @property
    def cpu_share(self) -> float:
        """Of one core."""
        return self.cpu_seconds / self.seconds


def cpu_seconds(pid: int) -> float:
    """Of all threads there are, to the nanosecond; `stat` counts in steps of 10 ms."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / _NANOSECONDS_A_SECOND


def reads(pid: int) -> int:
    return _field(Path(f"/proc/{pid}/io"), "syscr")


def resident_bytes(pid: int) -> int:
    return 1024 * _field(Path(f"/proc/{pid}/status"), "VmRSS")


def usage_over(pids: Sequence[int], seconds: float) -> Usage:
    """What these processes together use from now on for so long."""
    with used_meanwhile(pids) as used:
        time.sleep(seconds)
    return used[0]


@contextmanager
def used_meanwhile(pids: Sequence[int]) -> Iterator[list[Usage]]:
    """The list has one Usage once the block has ended."""
    used: list[Usage] = []
    began = time.monotonic()
    cpu, read = sum(map(cpu_seconds, pids)), sum(map(reads, pids))
    yield used
    used.append(
        Usage(
            time.monotonic() - began,
            sum(map(cpu_seconds, pids)) - cpu,
            sum(map(reads, pids)) - read,
        )
    )


@contextmanager
def memory_directory() -> Iterator[Path]:
    """On a RAM disk where there is one, so that no figure is a disk's."""
    shared = Path("/dev/shm")
    parent = shared if os.access(shared, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="flapd-bench-", dir=parent) as directory:
        yield Path(directory)


def _field(file: Path, name: str) -> int:
    line = next(line for line in file.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])
