"""Payload: the disk with flapd as scripts/install-node installs it, and the tests' guest part."""

import compileall
import os
import re
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from py_compile import PycInvalidationMode

from tests.deploy.packages.built import debian_12
from tests.kernel.packages import NOT_RUN, lay_down
from tests.kernel.quietly import run_quietly
from tests.system.harness import ROOT

_SITE = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
"""The guest has the same version."""
_PROGRAM = """#!/opt/flapd/bin/python
from flapd.cli.main import entry
raise SystemExit(entry())
"""


def make_payload(directory: Path, *, with_package: bool) -> Path:
    """A disk image in this directory."""
    tree = directory / "tree"
    installed = {**os.environ, "DESTDIR": str(tree / "root")}
    run_quietly([ROOT / "scripts/install-node"], environment=installed)
    _install_program(tree / "flapd")
    shutil.copytree(ROOT / "tests/kernel/guest", tree / "tests/kernel/guest")
    shutil.copy(ROOT / "tests/asking.py", tree / "tests")
    if with_package:
        lay_down(debian_12(), tree / "package", directory)
    shutil.copytree(ROOT / "systemd/drop-ins", tree / "drop-ins")
    disk = directory / "payload.ext4"
    run_quietly(["mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(disk), "180M"])
    shutil.rmtree(tree)
    return disk


def _install_program(venv: Path) -> None:
    """A virtual environment as it will lie in /opt/flapd, with what flapd needs and no more."""
    site = venv / _SITE
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = true\n")
    (venv / "bin/python").symlink_to("/usr/bin/python3")
    (venv / "bin/flapd").write_text(_PROGRAM)
    (venv / "bin/flapd").chmod(0o755)
    shutil.copytree(ROOT / "flapd", site / "flapd", ignore=shutil.ignore_patterns("__pycache__"))
    for name in _needed():
        _copy_distribution(name, site)
    # Compiling in the guest would take longer than everything else there.
    compileall.compile_dir(
        site,
        quiet=2,
        rx=NOT_RUN,
        stripdir=str(venv),
        prependdir="/opt/flapd",
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )


def _needed() -> list[str]:
    pinned = (ROOT / "requirements/runtime.txt").read_text()
    return re.findall(r"^([\w.-]+)==", pinned, re.MULTILINE)


def _copy_distribution(name: str, site: Path) -> None:
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        return  # needed by other versions of Python alone
    for file in files:
        source, target = Path(str(file.locate())), site / file
        if ".." not in file.parts and source.suffix != ".pyc":
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
