"""ProcFs: what procfs tells of one process, each piece bounded.

Reading the environment or the mappings of a process waits for its memory's lock; one that is held
for ever holds us up as well. Nothing here walks page tables (smaps): that would hold up the job.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from flapd.model.times import SECOND_NS
from flapd.sources.follow.regular import read_bounded

_LONGEST_ENVIRONMENT = 1 << 20
_LONGEST_MAPPINGS = 4 << 20
_LONGEST_SMALL = 64 * 1024
_MOST_THREADS = 1024
_MOST_FILES = 8192
_MOST_ANCESTORS = 8
_NSPID = re.compile(r"^NSpid:\t(.*)$", re.MULTILINE)
_TGID = re.compile(r"^Tgid:\t(\d+)$", re.MULTILINE)
_MNT_ID = re.compile(r"^mnt_id:\t(\d+)$", re.MULTILINE)


class ProcFs:
    """ProcessLookupError or FileNotFoundError where the process has ended; PermissionError."""

    def __init__(self, root: Path) -> None:
        self.root = root
        psutil.PROCFS_PATH = str(root)  # its only way to be told

    def processes(self) -> dict[int, int]:
        """All there are, each with a number that another with the same pid does not have.

        The number of its directory: given anew to each process (fs/proc/base.c), and at times to
        one that we know, when the kernel needs memory.
        """
        with os.scandir(self.root) as entries:
            return {int(entry.name): entry.inode() for entry in entries if entry.name.isdigit()}

    def environment(self, pid: int) -> bytes:
        """As it was when its program began."""
        return self._read(pid, "environ", _LONGEST_ENVIRONMENT)

    def started_unix_ns(self, pid: int) -> int:
        with _as_os_errors():
            seconds: float = psutil.Process(pid).create_time()
        return round(seconds * SECOND_NS)

    def is_alive(self, pid: int) -> bool:
        """False also for one of which its parent has yet to learn that it ended."""
        try:
            return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        except psutil.Error:
            return False

    def ancestors(self, pid: int) -> tuple[int, ...]:
        """Its parent first; those that are near."""
        found: list[int] = []
        with suppress(ProcessLookupError), _as_os_errors():
            while len(found) < _MOST_ANCESTORS and pid > 1:
                pid = psutil.Process(pid).ppid()
                found.append(pid)
        return tuple(found)

    def owner(self, pid: int) -> int:
        return self._path(pid).stat().st_uid

    def threads(self, pid: int) -> Iterator[str]:
        """Names of its threads."""
        with os.scandir(self._path(pid, "task")) as tasks:
            for task, _ in zip(tasks, range(_MOST_THREADS), strict=False):
                with suppress(FileNotFoundError, ProcessLookupError):
                    yield Path(task.path, "comm").read_text(errors="replace").rstrip("\n")

    def files(self, pid: int) -> dict[int, str]:
        """What its descriptors stand for, by their numbers."""
        found = {}
        with os.scandir(self._path(pid, "fd")) as entries:
            for entry, _ in zip(entries, range(_MOST_FILES), strict=False):
                with suppress(FileNotFoundError):
                    found[int(entry.name)] = str(Path(entry.path).readlink())
        return found

    def mount_of_file(self, pid: int, descriptor: int) -> int | None:
        """Number of the mount through which it is open."""
        told = self._text(pid, f"fdinfo/{descriptor}")
        found = _MNT_ID.search(told)
        return None if found is None else int(found[1])

    def mounts(self, pid: int) -> str:
        return self._read(pid, "mountinfo", _LONGEST_MAPPINGS).decode("utf-8", "replace")

    def cgroup(self, pid: int) -> str:
        return self._text(pid, "cgroup")

    def inner_pid(self, pid: int) -> int | None:
        """Its pid in its own container; None: it is in none."""
        found = _NSPID.search(self._text(pid, "status"))
        pids = found[1].split() if found is not None else []
        return int(pids[-1]) if len(pids) > 1 else None

    def process_of_thread(self, thread: int) -> int | None:
        with suppress(OSError):
            found = _TGID.search(self._text(thread, "status"))
            return None if found is None else int(found[1])
        return None

    def libraries(self, pid: int) -> set[str]:
        """Paths of the shared objects it has mapped."""
        mappings = self._read(pid, "maps", _LONGEST_MAPPINGS).decode("utf-8", "replace")
        paths = (line.partition("/") for line in mappings.splitlines() if ".so" in line)
        return {f"/{path}" for _, slash, path in paths if slash}

    def descriptor(self, pid: int, descriptor: int) -> Path:
        """Opens the file itself, whatever its name stands for now."""
        return self._path(pid, f"fd/{descriptor}")

    def root_of(self, pid: int) -> Path:
        return self._path(pid, "root")

    def directory_of(self, pid: int) -> str:
        """Its working directory, as it sees it."""
        return str(self._path(pid, "cwd").readlink())

    def _path(self, pid: int, name: str = "") -> Path:
        return self.root / str(pid) / name

    def _text(self, pid: int, name: str) -> str:
        return self._read(pid, name, _LONGEST_SMALL).decode("utf-8", "replace")

    def _read(self, pid: int, name: str, longest: int) -> bytes:
        """Empty where it is longer than anything sensible."""
        fd = os.open(self._path(pid, name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return read_bounded(fd, longest) or b""
        finally:
            os.close(fd)


@contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except psutil.AccessDenied as error:
        raise PermissionError(errno.EACCES, str(error)) from error
    except psutil.Error as error:
        raise ProcessLookupError(errno.ESRCH, str(error)) from error
