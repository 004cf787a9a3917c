"""Mount: serves operations at a mount point through libfuse 3, and takes them off again."""

import importlib
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from simulators.errors import SimulatorError
from simulators.fabric.operations import Operations

_DEVICE = "/dev/fuse"
_FUSERMOUNT = "fusermount3"
_FOREVER_SECONDS = 86_400
_THREADS = 64
_IDLE_THREADS = 4
_CAP_SYS_ADMIN = 1 << 21
_END_SECONDS = 2.0


def fuse_missing() -> str | None:
    """Why a FUSE file system cannot be mounted here; None where it can."""
    return _library_missing() or _device_missing() or _permission_missing()


@contextmanager
def mounted(operations: Operations, mountpoint: Path, ended: threading.Event) -> Iterator[None]:
    """Within it the tree can be read at `mountpoint`; after it the mount is gone.

    `ended` is set when the file system ends by itself, unmounted by somebody else.
    Readers that keep descriptors do not keep the mount: they read errors from then on.
    SimulatorError where mounting fails.
    """
    missing = fuse_missing()
    if missing is not None:
        raise SimulatorError(f"{missing}; --plain does without FUSE")
    over = threading.Event()

    def finished() -> None:
        for event in (over, ended, operations.ready):
            event.set()

    server = threading.Thread(target=_serve, args=(operations, mountpoint, finished), daemon=True)
    server.start()
    operations.ready.wait()
    if over.is_set():
        raise SimulatorError(
            f"{mountpoint} was not mounted, or not for long: libfuse says why in a line above"
        )
    try:
        yield
    finally:
        operations.stop()
        if not over.is_set():
            _unmount(mountpoint)
        server.join(_END_SECONDS)


def _serve(operations: Operations, mountpoint: Path, finished: Callable[[], None]) -> None:
    fuse = importlib.import_module("mfusepy")
    # Ten threads are libfuse's default since 3.12, so ten hanging reads would hang all.
    # Without its sibling it warns of its own default (seen with 3.14).
    threads = {"max_threads": _THREADS, "max_idle_threads": _IDLE_THREADS}
    # The kernel believes for so long what it was told of a name, present or absent.
    believed_seconds = _FOREVER_SECONDS if operations.is_still else 0
    try:
        fuse.FUSE(
            operations,
            str(mountpoint),
            raw_fi=True,
            foreground=True,
            ro=True,
            auto_unmount=True,
            fsname="simulated-fabric",
            entry_timeout=believed_seconds,
            attr_timeout=believed_seconds,
            negative_timeout=believed_seconds,
            **(threads if _version(fuse) >= (3, 12) else {}),
        )
    except RuntimeError:
        pass  # libfuse has said why on stderr
    finally:
        finished()


def _version(fuse: object) -> tuple[int, int]:
    major, minor = getattr(fuse, "fuse_version_major", 0), getattr(fuse, "fuse_version_minor", 0)
    return major, minor


def _unmount(mountpoint: Path) -> None:
    """Lazily where somebody still has files open."""
    command = [_FUSERMOUNT, "-u", str(mountpoint)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        subprocess.run([*command, "-z"], capture_output=True, check=False)


def _library_missing() -> str | None:
    if shutil.which(_FUSERMOUNT) is None:
        return f"{_FUSERMOUNT} is not installed (package fuse3)"
    try:
        fuse = importlib.import_module("mfusepy")
    except ImportError:
        return "the Python package mfusepy is not installed"
    except (OSError, AttributeError) as error:
        return f"libfuse 3 cannot be loaded (package fuse3): {error}"
    if _version(fuse) < (3, 0):
        return "mfusepy found libfuse 2 and needs libfuse 3 (FUSE_LIBRARY_NAME=fuse3)"
    return None


def _device_missing() -> str | None:
    try:
        os.close(os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{_DEVICE} cannot be opened: {error.strerror}"
    return None


def _permission_missing() -> str | None:
    status = _own_status()
    if int(status["CapEff"], 16) & _CAP_SYS_ADMIN:
        return None
    if os.geteuid() != 0 and _has_setuid(shutil.which(_FUSERMOUNT)) and status["NoNewPrivs"] == "0":
        return None
    return "mounting is not permitted here (no CAP_SYS_ADMIN)"


def _own_status() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _has_setuid(program: str | None) -> bool:
    return program is not None and bool(Path(program).stat().st_mode & stat.S_ISUID)
