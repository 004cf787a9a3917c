"""Packages that are checked by their content alone: nobody started them on their distribution."""

import platform
import subprocess
from pathlib import Path

import pytest

from deploy.packages.distributions import DISTRIBUTIONS
from tests.deploy.packages import content
from tests.deploy.packages.built import Package, build
from tests.programs import program

pytestmark = pytest.mark.long

OTHERS = [
    (distribution, arch)
    for distribution in DISTRIBUTIONS
    for arch in ("amd64", "arm64")
    if (distribution, arch) != ("debian-12", "amd64")
]


@pytest.mark.parametrize(("distribution", "arch"), OTHERS)
def test_its_content_is_right(distribution: str, arch: str, tmp_path: Path) -> None:
    package = build(distribution, arch, tmp_path)

    content.check_what_is_there(package)
    content.check_what_may_be_written_and_run(package)
    content.check_the_unit(package)
    content.check_its_dependencies_are_all_there(package)
    content.check_its_machine(package, arch)
    content.check_it_says_nothing_of_where_it_was_built(package)
    if package.file.suffix == ".rpm":
        check_what_rpm_reads(package)
    if content.ELF_MACHINE[arch] == {"x86_64": 62, "aarch64": 183}[platform.machine()]:
        content.check_it_runs(package, tmp_path)


def check_what_rpm_reads(package: Package) -> None:
    assert "python3.12" in asked_of_rpm(package, "--requires")
    assert asked_of_rpm(package, "--configfiles") == ["/etc/flapd/flapd.toml"]
    listed = asked_of_rpm(package, "--list")
    assert not {"/usr", "/usr/bin", "/usr/lib", "/usr/lib/systemd", "/etc"} & set(listed)


def asked_of_rpm(package: Package, what: str) -> list[str]:
    command = [program("rpm"), "--query", "--package", what, str(package.file)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_the_same_source_makes_the_same_package(debian: Package, tmp_path: Path) -> None:
    again = build("debian-12", "amd64", tmp_path)

    assert again.file.read_bytes() == debian.file.read_bytes()
