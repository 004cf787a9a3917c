"""The agent out of the package, with its own environment, as its unit starts it."""

import subprocess
from pathlib import Path

import pytest

from tests.deploy.packages.built import Package
from tests.deploy.packages.content import runnable
from tests.deploy.packages.one_port import PORT, TREE
from tests.system.harness import SimulatedNode, until
from tests.trees import lay_out

pytestmark = [pytest.mark.system, pytest.mark.long]


class PackagedNode(SimulatedNode):
    def __init__(self, directory: Path, home: Path) -> None:
        super().__init__(directory)
        self._home = home

    def start(self, *before: str) -> None:
        program = [*before, str(self._home / "bin/python"), "-I", str(self._home / "bin/flapd")]
        with self.log.open("ab") as log:
            self.agent = subprocess.Popen(
                [*program, "run", "--config", str(self.config)],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stderr=log,
            )


def test_a_flap_while_the_package_is_replaced_is_found_by_the_next_agent(
    debian: Package, tmp_path: Path
) -> None:
    node = PackagedNode(tmp_path, runnable(debian, tmp_path))
    lay_out(node.sysfs, TREE)
    node.start()
    try:
        until(node.is_ready, "the first agent")
        assert node.get("/api/v1/flaps")["items"] == []
        node.terminate()

        (node.sysfs / PORT / "counters/link_downed").write_text("8\n")
        node.start()
        until(node.is_ready, "the next agent")
        (flap,) = until(lambda: node.get("/api/v1/flaps")["items"], "the flap")
        assert (flap["port"], flap["count"], flap["seen"]) == ("mlx5_0/1", 1, "while_away")
    finally:
        node.kill()
