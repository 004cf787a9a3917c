"""RankLogs: where a rank's output goes, by what it has open."""

import posixpath
import re
from collections.abc import Iterator

import msgspec

from flapd.sources.jobs.procfs import ProcFs
from flapd.sources.jobs.rank_process import RankProcess

_OUTPUTS = {1: "standard output", 2: "standard error"}
_DELETED = " (deleted)"
_MEMORY = "/dev/shm/"  # noqa: S108 - nothing is made there
"""Files like any other (shm_overview(7))."""
_CONVERSION = re.compile(r"%([hp%])")


class OpenFile(msgspec.Struct, frozen=True):
    pid: int
    descriptor: int
    path: str
    """As the rank sees it."""
    mount: int | None


class RankLogs(msgspec.Struct, frozen=True):
    files: tuple[OpenFile, ...]
    unreadable: tuple[str, ...]
    """What goes where nobody else can read it, in words."""


def logs_of(proc: ProcFs, rank: RankProcess, host: str) -> RankLogs:
    """OSError where it has ended, or hides it."""
    opened = proc.files(rank.pid)
    debug = _debug_file(proc, rank, host)
    wanted = {number: path for number, path in opened.items() if number in _OUTPUTS}
    wanted |= {number: path for number, path in opened.items() if path == debug}
    files = {path: number for number, path in wanted.items() if path.startswith("/")}
    regular = {path: number for path, number in files.items() if not _is_device(path)}
    return RankLogs(
        tuple(
            OpenFile(
                rank.pid, number, path.removesuffix(_DELETED), proc.mount_of_file(rank.pid, number)
            )
            for path, number in regular.items()
        ),
        tuple(_unreadable(wanted)),
    )


def _unreadable(wanted: dict[int, str]) -> Iterator[str]:
    for number, path in wanted.items():
        kind = path.partition(":")[0]
        if kind in ("pipe", "socket"):
            yield f"{_OUTPUTS.get(number, 'a log')} is a {kind}"
        elif _is_device(path):
            yield f"{_OUTPUTS.get(number, 'a log')} is {path}"


def _is_device(path: str) -> bool:
    return path.startswith("/dev/") and not path.startswith(_MEMORY)


def _debug_file(proc: ProcFs, rank: RankProcess, host: str) -> str | None:
    """NCCL_DEBUG_FILE as NCCL expands it (ncclDebugInit in src/debug.cc)."""
    written = (rank.environment or {}).get("NCCL_DEBUG_FILE")
    if not written:
        return None
    pid = rank.pid if rank.inner_pid is None else rank.inner_pid
    values = {"h": host.partition(".")[0], "p": str(pid), "%": "%"}
    path = _CONVERSION.sub(lambda found: values[found[1]], written)
    return posixpath.normpath(posixpath.join(proc.directory_of(rank.pid), path))
