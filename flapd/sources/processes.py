"""Processes: is this one still the one we knew."""

import os
import signal
from pathlib import Path

from flapd.sources.files import read_text

_STATE, _START = 0, 19
"""Fields of /proc/PID/stat behind the name, which may hold anything (proc(5))."""


def start_time(pid: int) -> str | None:
    """Start in ticks since boot, which with its number names a process; None once it has ended."""
    stat = read_text(Path(f"/proc/{pid}/stat"))
    fields = stat.rpartition(")")[2].split() if stat else []
    if len(fields) <= _START or fields[_STATE] in "ZX":
        return None
    return fields[_START]


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
