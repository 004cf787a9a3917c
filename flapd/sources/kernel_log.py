"""KernelLog: what the kernel prints of links, modules and cards, from now on.

Reading it asks no device, and needs CAP_SYSLOG where kernel.dmesg_restrict is 1.
"""

import os
import stat
import time
from collections.abc import Callable
from errno import EPIPE
from pathlib import Path

from flapd.core.fabric.kernel_lines import Record, parse_line, parse_record
from flapd.model.observation import KernelHint
from flapd.sources.files import reason_of
from flapd.sources.kernel_paths import why_not_kernels

MOST_AT_ONCE = 64
"""A kernel that prints without end must not keep its reader from all else."""
STRAY_PPM = 10
"""So far the clock of the log may stray from CLOCK_MONOTONIC_RAW, though both count alike."""

_LONGEST_RECORD_BYTES = 8192
"""A shorter buffer gives EINVAL (kernel/printk/printk.c: devkmsg_read)."""


class StampClock:
    """Turns stamps of the log into monotonic time.

    They count as CLOCK_MONOTONIC_RAW does, from another zero: how far apart the two are is
    never more than what the quickest record so far took to arrive. CLOCK_MONOTONIC is steered
    by NTP, and so is compared at the moment of reading alone.
    """

    def __init__(self) -> None:
        self._apart_ns: int | None = None
        self._measured_raw_ns = 0

    def latest_ns(self, stamp_ns: int, raw_ns: int, now_ns: int) -> int:
        """When it was printed at the latest; both clocks as they stand at its reading."""
        apart_ns = raw_ns - stamp_ns
        if self._apart_ns is not None:
            strayed_ns = (raw_ns - self._measured_raw_ns) * STRAY_PPM // 1_000_000
            apart_ns = min(apart_ns, self._apart_ns + strayed_ns)
        self._apart_ns, self._measured_raw_ns = apart_ns, raw_ns
        return now_ns - (raw_ns - stamp_ns - apart_ns)


def _clocks() -> tuple[int, int]:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW), time.monotonic_ns()


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


class KernelLog:
    """Used from one thread at a time; OSError where it cannot be read."""

    def __init__(self, path: Path, clocks: Callable[[], tuple[int, int]] = _clocks) -> None:
        """`clocks` gives CLOCK_MONOTONIC_RAW and CLOCK_MONOTONIC."""
        self.lost = 0
        """Records that were overwritten before they were read."""
        self._fd = _open(path)
        if stat.S_ISCHR(os.fstat(self._fd).st_mode):
            os.lseek(self._fd, 0, os.SEEK_END)
        self._clocks = clocks
        self._stamps = StampClock()
        self._next: int | None = None

    def fileno(self) -> int:
        """Readable where something was printed."""
        return self._fd

    def close(self) -> None:
        os.close(self._fd)

    def read(self) -> list[KernelHint]:
        """What was printed since and tells something; never waits."""
        hints = []
        for _ in range(MOST_AT_ONCE):
            try:
                raw = os.read(self._fd, _LONGEST_RECORD_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != EPIPE:
                    raise
                continue  # overwritten: how many were is seen by the next one's number
            if not raw:
                break
            if (hint := self._hint(raw)) is not None:
                hints.append(hint)
        return hints

    def _hint(self, raw: bytes) -> KernelHint | None:
        record = parse_record(raw)
        if record is None:
            return None
        logged_ns, received_ns = self._times(record)
        line = parse_line(record.text) if record.by_kernel else None
        return KernelHint(line, logged_ns, received_ns) if line is not None else None

    def _times(self, record: Record) -> tuple[int, int]:
        if self._next is not None:
            self.lost += max(0, record.sequence - self._next)
        self._next = record.sequence + 1
        raw_ns, now_ns = self._clocks()
        return self._stamps.latest_ns(record.stamp_us * 1000, raw_ns, now_ns), now_ns


def why_no_kernel_log(sysfs: Path, dev: Path) -> str | None:
    """The reason in words why it tells nothing of what is in `sysfs`; None where it does."""
    path = dev / "kmsg"
    try:
        fd = _open(path)
    except OSError as error:
        return f"{path}: {reason_of(error)}"
    try:
        is_kernels = stat.S_ISCHR(os.fstat(fd).st_mode)
    finally:
        os.close(fd)
    return why_not_kernels(sysfs) if is_kernels else None
