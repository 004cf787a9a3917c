"""The image of the container, built by its recipe without an engine, and the agent run from it.

By buildah, in a chroot; its base is Debian's own packages, since that needs no registry.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from flapd import __version__
from tests.deploy.packages.built import ROOT, Package
from tests.deploy.packages.one_port import TREE
from tests.system.harness import SimulatedNode, until
from tests.trees import lay_out

pytestmark = [pytest.mark.system, pytest.mark.long]


class Buildah:
    """With a store of its own."""

    def __init__(self, directory: Path) -> None:
        config = directory / "storage.conf"
        places = f'runroot = "{directory}/run"\ngraphroot = "{directory}/graph"\n'
        config.write_text(f'[storage]\ndriver = "vfs"\n{places}')
        self._environment = {
            **os.environ,
            "CONTAINERS_STORAGE_CONF": str(config),
            "BUILDAH_ISOLATION": "chroot",
        }

    def __call__(self, *arguments: str | Path) -> str:
        done = subprocess.run(
            ["buildah", *map(str, arguments)],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(["buildah", "run", *arguments], env=self._environment)


@pytest.fixture
def buildah(tmp_path: Path) -> Buildah:
    for needed in ("buildah", "mmdebstrap"):
        if shutil.which(needed) is None:
            pytest.skip(f"there is no {needed} here")
    if os.geteuid() != 0:
        pytest.skip("a chroot needs root")
    return Buildah(tmp_path)


def test_its_recipe_makes_an_image_in_which_the_agent_runs(
    debian: Package, buildah: Buildah, tmp_path: Path
) -> None:
    image = built(buildah, debian, tmp_path)
    container = buildah("from", image)

    assert buildah("run", container, "--", "/usr/bin/flapd", "--version") == f"flapd {__version__}"
    assert "ok:" in buildah("run", container, "--", "/usr/bin/flapd", "check-config")
    check_the_agent(buildah, container, tmp_path)


def built(buildah: Buildah, package: Package, directory: Path) -> str:
    (directory / "context/dist").mkdir(parents=True)
    shutil.copy(package.file, directory / "context/dist")
    root = directory / "base.tar"
    made = ["mmdebstrap", "--quiet", "--variant=apt", "bookworm", str(root)]
    subprocess.run(made, check=True, timeout=600)
    scratch = buildah("from", "scratch")
    buildah("add", scratch, root, "/")
    buildah("commit", scratch, "localhost/base")
    recipe = ROOT / "deploy/container/Containerfile"
    name = f"localhost/flapd:{__version__}"
    base = ("--build-arg", "BASE=localhost/base")
    buildah("bud", *base, "-f", recipe, "-t", name, directory / "context")
    return name


def check_the_agent(buildah: Buildah, container: str, directory: Path) -> None:
    """As the DaemonSet runs it: `run`, its directories the host's, /sys only to read."""
    (directory / "node").mkdir()
    node = SimulatedNode(directory / "node")
    lay_out(node.sysfs, TREE)
    mounted = f"{node.directory}:{node.directory}"
    agent = buildah.start(
        *("--volume", mounted, "--env", "FLAPD_NODE__NAME=node17", container),
        *("--", "/usr/bin/flapd", "run", "--config", str(node.config)),
    )
    try:
        until(node.is_ready, "the agent in the container")
        (port,) = node.get("/api/v1/ports")["items"]
        assert (port["port"], port["witness"]["value"]) == ("mlx5_0/1", 7)
    finally:
        agent.terminate()
        agent.wait(60)
