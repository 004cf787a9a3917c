"""Image: kernel, initrd and root of the virtual machine, built once and kept elsewhere."""

import fcntl
import os
import platform
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from tests.kernel.payload import PYTHON

_SOURCE = Path(__file__).parent / "debian"
_BUILD_SECONDS = 900
_QEMU = "qemu-system-x86_64"


def place() -> Path:
    """$FLAPD_KERNEL_IMAGE, else in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("FLAPD_KERNEL_IMAGE") or Path(cache) / "flapd/kernel-image")


def missing() -> str | None:
    """Why no virtual machine can be had here; None where one can."""
    if platform.machine() != "x86_64":
        return "the virtual machine is an x86_64"
    if sys.version_info[:2] != PYTHON:
        return f"the virtual machine has Python {PYTHON[0]}.{PYTHON[1]}, unlike this environment"
    programs = (_QEMU, "mke2fs") if is_built() else (_QEMU, "mke2fs", "mmdebstrap", "cpio", "xz")
    for program in programs:
        if shutil.which(program) is None:
            return f"there is no program {program} (make system-packages)"
    if not is_built() and os.geteuid() != 0:
        return "building the virtual machine's image needs root"
    return None


def is_built() -> bool:
    stamp = place() / "stamp"
    return stamp.exists() and stamp.read_text() == _stamp()


def built() -> Path:
    """The directory of the image; builds it first where it is missing or another."""
    directory = place()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_built():
            subprocess.run([_SOURCE / "build", directory], check=True, timeout=_BUILD_SECONDS)
            (directory / "stamp").write_text(_stamp())
    return directory


def _stamp() -> str:
    content = b"".join(file.read_bytes() for file in sorted(_SOURCE.iterdir()))
    return sha256(content).hexdigest()
