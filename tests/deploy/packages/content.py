"""What holds for the package of any distribution."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from deploy.packages.distributions import DISTRIBUTIONS
from flapd import __version__
from tests.deploy.packages.built import ROOT, Package

ELF_MACHINE = {"amd64": 62, "arm64": 183}
"""EM_X86_64, EM_AARCH64 (include/uapi/linux/elf-em.h)."""
EXPECTED = (
    "usr/bin/flapd",
    "usr/lib/flapd/bin/flapd",
    "usr/lib/flapd/drop-ins/jobs.conf",
    "usr/lib/systemd/system/flapd.service",
    "usr/lib/systemd/system/flapd-hub.service",
    "usr/share/doc/flapd/hub.toml",
    "usr/lib/sysusers.d/flapd.conf",
    "usr/lib/tmpfiles.d/flapd.conf",
    "etc/flapd/flapd.toml",
    "usr/share/doc/flapd/copyright",
    "usr/share/bash-completion/completions/flapd",
)


def files(package: Package) -> list[Path]:
    return [path for path in package.tree.rglob("*") if path.is_file() and not path.is_symlink()]


def check_what_is_there(package: Package) -> None:
    there = {str(path.relative_to(package.tree)) for path in package.tree.rglob("*")}

    assert set(EXPECTED) <= there
    assert not [name for name in there if "__pycache__" in name or "direct_url" in name]
    assert not [name for name in there if not name.startswith(("usr", "etc"))]
    link = (package.tree / "usr/bin/flapd").readlink()
    assert (package.tree / "usr/bin" / link).resolve() == (package.home / "bin/flapd").resolve()
    python = DISTRIBUTIONS[package.distribution].python
    assert str((package.home / "bin/python").readlink()) == f"/usr/bin/python{python}"


def check_what_may_be_written_and_run(package: Package) -> None:
    for path in files(package):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode in (0o644, 0o755), path
    assert (package.home / "bin/flapd").stat().st_mode & stat.S_IXOTH


def check_the_unit(package: Package) -> None:
    hub = (package.tree / "usr/lib/systemd/system/flapd-hub.service").read_text()
    assert "/usr/lib/flapd/bin/flapd hub" in hub
    assert "/opt/flapd" not in hub
    unit = (package.tree / "usr/lib/systemd/system/flapd.service").read_text()
    source = (ROOT / "systemd/flapd.service").read_text()

    assert "ExecStart=/usr/lib/flapd/bin/flapd run\n" in unit
    assert "/opt/" not in unit
    assert unit.replace("/usr/lib/flapd/", "/opt/flapd/") == source
    knows_steps = DISTRIBUTIONS[package.distribution].systemd >= 254
    steps = package.tree / "usr/lib/systemd/system/flapd.service.d/backoff.conf"
    assert steps.exists() is knows_steps


def check_its_dependencies_are_all_there(package: Package) -> None:
    there = {re.sub(r"[-_.]+", "-", path.name).lower() for path in package.site.glob("*.dist-info")}
    pins = re.findall(
        r"^([\w.-]+)==([\w.]+)(?: ; (.*?))? \\$",
        (ROOT / "requirements/runtime.txt").read_text(),
        re.MULTILINE,
    )
    always = {
        f"{name}-{version.replace('.', '-')}-dist-info" for name, version, when in pins if not when
    }

    assert always
    assert always <= there
    assert f"flapd-{__version__.replace('.', '-')}-dist-info" in there


def check_its_machine(package: Package, arch: str) -> None:
    libraries = [path for path in files(package) if ".so" in path.suffixes]

    assert len(libraries) > 5
    for path in libraries:
        machine = int.from_bytes(path.read_bytes()[18:20], "little")
        assert machine == ELF_MACHINE[arch], path


def check_it_says_nothing_of_where_it_was_built(package: Package) -> None:
    told = [path for path in files(package) if str(ROOT).encode() in path.read_bytes()]

    assert told == []


def runnable(package: Package, directory: Path) -> Path:
    """A copy of its environment, for the Python of its distribution where that is here."""
    python = DISTRIBUTIONS[package.distribution].python
    home = directory / "home"
    shutil.copytree(package.home, home, symlinks=True)
    (home / "bin/python").unlink()
    (home / "bin/python").symlink_to(interpreter(python))
    (home / "pyvenv.cfg").write_text(f"home = {Path(interpreter(python)).parent}\n")
    return home


def check_it_runs(package: Package, directory: Path) -> None:
    """From this very environment and nothing else."""
    home = runnable(package, directory)
    config = package.tree / "etc/flapd/flapd.toml"
    imports = "import aiohttp, msgspec, nacl.bindings, nkeys, psutil, pyroute2, flapd.node"

    for arguments in (
        [home / "bin/flapd", "check-config", "--config", config],
        ["-c", imports],
    ):
        done = subprocess.run(
            [home / "bin/python", "-I", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def interpreter(python: str) -> str:
    """Not a shim: the real file. Skips the test where that Python is not here."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for candidate in (
        shutil.which(f"python{python}") or "false",
        *pyenv.glob(f"{python}.*/bin/python3"),
    ):
        asked = [str(candidate), "-c", "import sys; print(sys._base_executable)"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    pytest.skip(f"there is no Python {python} here")
