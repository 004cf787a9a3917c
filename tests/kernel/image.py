"""Image: kernel, initrd and root of the virtual machine, built once and kept elsewhere.

Of the Debian whose Python is this environment's: what was compiled for another does not run there.
"""

import fcntl
import os
import platform
import shutil
import sys
from hashlib import sha256
from pathlib import Path

from tests.kernel.quietly import run_quietly

SUITES = {(3, 11): "bookworm", (3, 13): "trixie"}
"""By the version of Python: Debian 12 with Linux 6.1, Debian 13 with Linux 6.12."""
_SOURCE = Path(__file__).parent / "debian"
_BUILD_SECONDS = 900
_QEMU = "qemu-system-x86_64"


def place() -> Path:
    """$FLAPD_KERNEL_IMAGE, else in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    images = os.environ.get("FLAPD_KERNEL_IMAGE") or Path(cache) / "flapd/kernel-image"
    return Path(images) / _suite()


def _suite() -> str:
    return SUITES[sys.version_info[:2]]


def is_debian_12() -> bool:
    return SUITES.get(sys.version_info[:2]) == "bookworm"


def missing() -> str | None:
    """Why no virtual machine can be had here; None where one can."""
    if platform.machine() != "x86_64":
        return "the virtual machine is an x86_64"
    if sys.version_info[:2] not in SUITES:
        return "no Debian for a virtual machine has this environment's version of Python"
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
            run_quietly([_SOURCE / "build", directory, _suite()], _BUILD_SECONDS)
            (directory / "stamp").write_text(_stamp())
    return directory


def _stamp() -> str:
    content = b"".join(file.read_bytes() for file in sorted(_SOURCE.iterdir()))
    return sha256(content).hexdigest()
