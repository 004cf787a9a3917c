"""The package for Debian 12 in the hands of dpkg: below a directory, with a made-up systemctl."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.packages.built import ROOT, Package, packed, unpacked_as
from tests.programs import program

SYSTEMCTL = '#!/bin/sh\necho "$@" >>"$TOLD"\n'
PYTHON = Path("/usr/bin/python3.11")
SCRIPTS = ROOT / "deploy/packages/scripts"
NEEDED = {"attr", "flapd", "msgspec", "pygments", "rich", "structlog"}


class Node:
    """A root of its own for dpkg, which runs the package's scripts with DPKG_ROOT set to it."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "root"
        self.told = directory / "told"
        programs = directory / "bin"
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "TOLD": str(self.told),
        }
        for made in ("var/lib/dpkg/updates", "var/lib/dpkg/info", "run/systemd/system", "etc"):
            (self.root / made).mkdir(parents=True)
        for empty in ("status", "available"):
            (self.root / "var/lib/dpkg" / empty).touch()
        programs.mkdir()
        (programs / "systemctl").write_text(SYSTEMCTL)
        (programs / "systemctl").chmod(0o755)

    def dpkg(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Its dependencies are those of the machine that this runs on."""
        self.told.write_text("")
        forced = [f"--force-{what}" for what in ("script-chrootless", "depends", "unsafe-io")]
        return subprocess.run(
            [program("dpkg"), f"--root={self.root}", *forced, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def rpm_runs(self, script: str, left: int) -> list[str]:
        """What systemctl heard: rpm runs the same scripts, and says how many will be left."""
        self.told.write_text("")
        environment = {**self._environment, "DPKG_ROOT": str(self.root)}
        subprocess.run([SCRIPTS / script, str(left)], env=environment, check=True)
        return self.systemctl_heard()

    def systemctl_heard(self) -> list[str]:
        return self.told.read_text().splitlines()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    if os.geteuid() != 0 or not PYTHON.exists():
        pytest.skip(f"dpkg wants root, and the package {PYTHON}")
    return Node(tmp_path)


def another_version(package: Package, version: str, directory: Path) -> Path:
    """With no more than checking a configuration takes: all of it would take long to compile."""
    tree = unpacked_as(package, version, directory)
    site = tree / package.site.relative_to(package.tree)
    for path in site.iterdir():
        if path.is_dir() and path.name not in NEEDED:
            shutil.rmtree(path)
    return packed(tree, directory / f"flapd_{version}.deb")


def test_it_is_installed_upgraded_downgraded_removed_and_purged(
    debian: Package, node: Node, tmp_path: Path
) -> None:
    old, new = (another_version(debian, version, tmp_path) for version in ("0.0.8", "0.0.9"))
    history, config = node.root / "var/lib/flapd/history.sqlite", node.root / "etc/flapd/flapd.toml"
    home = node.root / "usr/lib/flapd"

    installed = node.dpkg("-i", old)
    assert installed.returncode == 0, installed.stderr
    assert node.systemctl_heard() == ["daemon-reload"], "it is not for a package to start it"
    assert "systemctl enable --now flapd" in installed.stdout
    assert "flapd:" in (node.root / "etc/group").read_text()
    assert list(home.glob("lib/python3.11/site-packages/flapd/__pycache__/*.pyc"))

    history.parent.mkdir(parents=True)
    history.touch()
    config.write_text('[log]\nlevel = "warning"\n')
    upgraded = node.dpkg("-i", new)
    assert upgraded.returncode == 0, upgraded.stderr
    assert node.systemctl_heard() == [
        "daemon-reload",
        "try-restart flapd.service",
        "try-restart flapd-hub.service",
    ]
    assert "warning" in config.read_text()

    downgraded = node.dpkg("-i", old)
    assert downgraded.returncode == 0, downgraded.stderr
    assert "0.0.8 is older than 0.0.9" in downgraded.stderr

    removed = node.dpkg("-r", "flapd")
    assert removed.returncode == 0, removed.stderr
    assert node.systemctl_heard() == [
        "--quiet disable --now flapd.service flapd-hub.service",
        "daemon-reload",
    ]
    assert not home.exists()
    assert history.exists()
    assert config.exists()

    purged = node.dpkg("-P", "flapd")
    assert purged.returncode == 0, purged.stderr
    assert not history.parent.exists()
    assert not config.parent.exists()


def test_an_agent_whose_configuration_the_new_version_refuses_runs_on(
    debian: Package, node: Node, tmp_path: Path
) -> None:
    old, new = (another_version(debian, version, tmp_path) for version in ("0.0.8", "0.0.9"))
    node.dpkg("-i", old)
    (node.root / "etc/flapd/flapd.toml").write_text('[log]\nlevel = "loud"\n')

    upgraded = node.dpkg("-i", new)

    assert upgraded.returncode != 0
    assert "log.level" in upgraded.stderr
    assert "not restarted" in upgraded.stderr
    assert "try-restart flapd.service" not in node.systemctl_heard()

    (node.root / "etc/flapd/flapd.toml").write_text("")
    assert node.dpkg("--configure", "flapd").returncode == 0
    assert "try-restart flapd.service" in node.systemctl_heard()


def test_what_the_script_had_installed_is_told_of(
    debian: Package, node: Node, tmp_path: Path
) -> None:
    (node.root / "opt/flapd").mkdir(parents=True)

    installed = node.dpkg("-i", another_version(debian, "0.0.8", tmp_path))

    assert "/opt/flapd and /usr/local/bin/flapd" in installed.stderr


def test_rpm_too_lets_the_agent_run_until_the_new_one_is_there(
    debian: Package, node: Node, tmp_path: Path
) -> None:
    node.dpkg("-i", another_version(debian, "0.0.8", tmp_path))
    history = node.root / "var/lib/flapd/history.sqlite"
    history.parent.mkdir(parents=True)
    history.touch()

    assert node.rpm_runs("postinstall", 1) == ["daemon-reload"]
    assert node.rpm_runs("postinstall", 2) == [
        "daemon-reload",
        "try-restart flapd.service",
        "try-restart flapd-hub.service",
    ]
    assert node.rpm_runs("preremove", 1) == []
    assert node.rpm_runs("postremove", 1) == []
    assert node.rpm_runs("preremove", 0) == [
        "--quiet disable --now flapd.service flapd-hub.service"
    ]
    assert node.rpm_runs("postremove", 0) == ["daemon-reload"]
    assert history.exists()
