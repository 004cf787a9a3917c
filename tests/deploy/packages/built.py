"""Packages, built as people build them, and what is in them."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from deploy.packages.distributions import DISTRIBUTIONS
from tests.programs import program

ROOT = Path(__file__).parents[3]


class Package(NamedTuple):
    distribution: str
    file: Path
    tree: Path
    """What it installs, unpacked."""

    @property
    def home(self) -> Path:
        return self.tree / "usr/lib/flapd"

    @property
    def site(self) -> Path:
        return self.home / f"lib/python{DISTRIBUTIONS[self.distribution].python}/site-packages"


def build(distribution: str, arch: str, directory: Path) -> Package:
    command = [sys.executable, "-m", "deploy.packages", distribution, "--arch", arch]
    subprocess.run([*command, "--into", str(directory)], cwd=ROOT, check=True, timeout=300)
    (file,) = (path for path in directory.iterdir() if path.suffix in (".deb", ".rpm"))
    tree = directory / "tree"
    tree.mkdir()
    if file.suffix == ".deb":
        subprocess.run([program("dpkg-deb"), "-x", file, tree], check=True)
    else:
        archive = subprocess.run([program("rpm2cpio"), file], check=True, capture_output=True)
        unpack = [program("cpio"), "--extract", "--make-directories", "--quiet"]
        subprocess.run(unpack, input=archive.stdout, cwd=tree, check=True)
    return Package(distribution, file, tree)
