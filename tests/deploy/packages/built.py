"""Packages, built as people build them, and what is in them."""

import re
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from deploy.packages.distributions import DISTRIBUTIONS
from tests.programs import program

ROOT = Path(__file__).parents[3]
_once = threading.Lock()


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


def debian_12() -> Package:
    """Built once, for whoever asks first: tests of it, or a machine in the background."""
    with _once:
        return _debian_12()[1]


@cache
def _debian_12() -> "tuple[TemporaryDirectory[str], Package]":
    directory = TemporaryDirectory(prefix="flapd-debian-12-")  # kept to the end of the process
    return directory, build("debian-12", "amd64", Path(directory.name))


def unpacked_as(package: Package, version: str, directory: Path) -> Path:
    """Of a deb: all that is in it, as dpkg-deb packs it, with another version."""
    tree = directory / f"tree-{version}"
    subprocess.run([program("dpkg-deb"), "-R", package.file, tree], check=True)
    control = tree / "DEBIAN/control"
    described = re.sub(r"(?m)^Version: .*$", f"Version: {version}", control.read_text())
    control.write_text(described)
    return tree


def packed(tree: Path, file: Path) -> Path:
    made = [program("dpkg-deb"), "-Znone", "--root-owner-group", "-b", str(tree), str(file)]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    return file


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
