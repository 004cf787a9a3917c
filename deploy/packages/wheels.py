"""Puts flapd and what it needs into a directory, for another Python and another machine."""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

from deploy.packages.distributions import Distribution
from flapd import __version__

ROOT = Path(__file__).parents[2]
_PINNED = ROOT / "requirements/runtime.txt"
_SOURCE_ONLY = {"nkeys"}
"""Published as source alone: pure Python, and so built here for everywhere."""
_OLDEST_GLIBC_MINOR = 17
"""That of manylinux2014."""
_LEFT_OVER = ("bin", "share")
"""Programs of dependencies, and their manuals."""
_TARGET = ("--no-deps", "--no-compile", "--target")


def fill(site: Path, distribution: Distribution, machine: str, scratch: Path) -> None:
    """Files of others have the hashes that requirements/runtime.txt says; CalledProcessError."""
    needed = list(_needed(distribution.python))
    built = [pin for pin in needed if Requirement(pin.split(" --")[0]).name in _SOURCE_ONLY]
    ready = [pin for pin in needed if pin not in built]
    _install_pinned(ready, site, scratch, _of_another(distribution, machine))
    _install_pinned(built, site, scratch, ())
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", scratch, ROOT)
    _pip("install", *_TARGET, site, "--no-index", "--find-links", scratch, f"flapd=={__version__}")
    for name in _LEFT_OVER:
        shutil.rmtree(site / name, ignore_errors=True)


def _needed(python: str) -> Iterable[str]:
    """Pins with their hashes: pip itself would go by the Python that it runs with."""
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }
    lines = _PINNED.read_text().replace("\\\n", "").splitlines()
    for line in lines:
        pin, _, hashes = line.partition(" --hash=")
        if hashes:
            wanted = Requirement(pin)
            if wanted.marker is None or wanted.marker.evaluate(environment):
                yield f"{wanted.name}{wanted.specifier} --hash={hashes}"


def _install_pinned(pins: list[str], site: Path, scratch: Path, more: Iterable[str]) -> None:
    file = scratch / "requirements.txt"
    file.write_text("\n".join(pins))
    _pip("install", *_TARGET, site, "--require-hashes", *more, "-r", file)


def _of_another(distribution: Distribution, machine: str) -> Iterable[str]:
    yield from ("--only-binary", ":all:", "--implementation", "cp")
    yield from ("--python-version", distribution.python)
    for abi in (f"cp{distribution.python.replace('.', '')}", "abi3", "none"):
        yield from ("--abi", abi)
    for minor in range(distribution.glibc_minor, _OLDEST_GLIBC_MINOR - 1, -1):
        yield from ("--platform", f"manylinux_2_{minor}_{machine}")
    yield from ("--platform", f"manylinux2014_{machine}")


def _pip(*arguments: str | Path) -> None:
    pip = (sys.executable, "-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check")
    subprocess.run([*pip, *arguments], check=True)
