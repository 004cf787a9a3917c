"""The distributions that a package is made for, and the Python of each."""

from typing import NamedTuple


class Distribution(NamedTuple):
    packager: str
    release: str
    """What follows the version, so that the package of a newer release of it counts as newer."""
    python: str
    """Minor version of /usr/bin/pythonX.Y, which the package needs."""
    glibc_minor: int
    systemd: int
    recommends: tuple[str, ...] = ("python3-pyverbs", "ibverbs-providers")


DISTRIBUTIONS = {
    "ubuntu-22.04": Distribution("deb", "1~ubuntu22.04", "3.10", glibc_minor=35, systemd=249),
    "ubuntu-24.04": Distribution("deb", "1~ubuntu24.04", "3.12", glibc_minor=39, systemd=255),
    "debian-12": Distribution("deb", "1~debian12", "3.11", glibc_minor=36, systemd=252),
    # Its own Python is 3.9, and so is that of its pyverbs.
    "el-9": Distribution("rpm", "1.el9", "3.12", glibc_minor=34, systemd=252, recommends=()),
}

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""By the name that a package of Debian's has for it."""
