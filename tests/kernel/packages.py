"""Packages: flapd's for Debian 12, and the same as a newer version, for the virtual machine."""

import compileall
import os
import re
import tarfile
from pathlib import Path
from py_compile import PycInvalidationMode

from deploy.packages.tree import HOME
from flapd import __version__
from tests.deploy.packages.built import Package, packed, unpacked_as
from tests.kernel.guest.package import COMPILED, NEWER, NEWER_VERSION, OLDER

NOT_RUN = re.compile(r"/pygments/(lexers|styles)/")
_LATER_SECONDS = 60


def lay_down(package: Package, directory: Path, scratch: Path) -> None:
    """Both versions, and what compiling them gives: in the guest that would take a minute each."""
    directory.mkdir()
    (directory / OLDER.name).write_bytes(package.file.read_bytes())
    tree = unpacked_as(package, f"{NEWER_VERSION}-1", scratch)
    _say_version(tree / package.site.relative_to(package.tree) / "flapd/__init__.py")
    packed(tree, directory / NEWER.name)
    _compile(tree / HOME, directory / COMPILED.name)


def _say_version(file: Path) -> None:
    """Later than the older one's: of the same length, it would be held to be compiled."""
    text = file.read_text()
    said = re.sub(re.escape(__version__), NEWER_VERSION, text)
    assert said != text
    later = file.stat().st_mtime + _LATER_SECONDS
    file.write_text(said)
    os.utime(file, (later, later))


def _compile(home: Path, archive: Path) -> None:
    compileall.compile_dir(
        home / "lib",
        quiet=2,
        rx=NOT_RUN,
        stripdir=str(home),
        prependdir=f"/{HOME}",
        invalidation_mode=PycInvalidationMode.TIMESTAMP,
    )
    with tarfile.open(archive, "w") as tar:
        for made in sorted(home.rglob("__pycache__")):
            tar.add(made, made.relative_to(home))
