"""The real agent on a simulated node, both as processes."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from simulators.fabric.spec import Spec
from simulators.fabric.truth import Truth
from tests.asking import Asked, wait_for

ROOT = Path(__file__).parent.parent.parent
PATIENCE_SECONDS = 60.0

T = TypeVar("T")


def until(condition: Callable[[], T | None], what: str, seconds: float = PATIENCE_SECONDS) -> T:
    return wait_for(condition, what, seconds, every_seconds=0.02)


class SimulatedNode(Asked):
    """A simulated /sys, and an agent on it that can be killed and started again."""

    def __init__(self, directory: Path, config: str = "") -> None:
        self.directory = directory
        self.sysfs = directory / "sys"
        self.socket = directory / "flapd.sock"
        super().__init__(self.socket)
        self.history = directory / "state/history.sqlite"
        self.config = directory / "flapd.toml"
        self.log = directory / "agent.log"
        self.agent: subprocess.Popen[bytes] | None = None
        self.config.write_text(
            f"""
            node.name = "node7"
            http.listen = ""
            [paths]
            sysfs = "{self.sysfs}"
            state = "{directory}/state"
            ring = "{directory}/ring"
            socket = "{self.socket}"
            {config}
            """
        )

    def flapd(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One command of flapd, to its end."""
        return subprocess.run(
            [sys.executable, "-m", "flapd", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, *before: str) -> None:
        """`before` are words of a command that runs it with fewer rights."""
        with self.log.open("ab") as log:
            self.agent = subprocess.Popen(
                [*before, sys.executable, "-m", "flapd", "run", "--config", str(self.config)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stderr=log,
            )

    def kill(self) -> None:
        assert self.agent is not None
        self.agent.kill()
        self.agent.wait()

    def terminate(self) -> float:
        """Ends the agent as a service manager does; how many seconds that took."""
        assert self.agent is not None
        began = time.monotonic()
        self.agent.send_signal(signal.SIGTERM)
        self.agent.wait(PATIENCE_SECONDS)
        return time.monotonic() - began

    def sampler_pid(self) -> int:
        return int(json.loads((self.directory / "ring/sampler.json").read_text())["pid"])


@contextmanager
def simulated_fabric(
    node: SimulatedNode, spec: Spec, origin_in_seconds: float, *options: str
) -> Iterator[Truth]:
    """Mounts the node's /sys; its schedule begins after the given time."""
    spec_file, truth_file = node.directory / "spec.json", node.directory / "truth.json"
    spec_file.write_bytes(msgspec.json.encode(spec))
    simulator = subprocess.Popen(
        [
            *(sys.executable, "-m", "simulators.fabric", "--until-eof"),
            *("--spec", str(spec_file), "--mount", str(node.sysfs)),
            *("--truth", str(truth_file), "--origin-in", str(origin_in_seconds)),
            *options,
        ],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert simulator.stdin is not None
    assert simulator.stdout is not None
    try:
        assert select.select([simulator.stdout], [], [], PATIENCE_SECONDS)[0], "no simulated fabric"
        assert simulator.stdout.readline().startswith(b"ready ")
        yield msgspec.json.decode(truth_file.read_bytes(), type=Truth)
    finally:
        simulator.stdin.close()
        simulator.stdout.close()
        simulator.wait(PATIENCE_SECONDS)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
