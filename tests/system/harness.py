"""The real agent on a simulated node, both as processes."""

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from simulators.fabric.spec import Spec
from simulators.fabric.truth import Truth

ROOT = Path(__file__).parent.parent.parent
PATIENCE_SECONDS = 20.0

T = TypeVar("T")


def until(condition: Callable[[], T | None], what: str, seconds: float = PATIENCE_SECONDS) -> T:
    """Waits for what only asking can tell; fails naming what never came."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come within {seconds} s")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class SimulatedNode:
    """A simulated /sys, and an agent on it that can be killed and started again."""

    def __init__(self, directory: Path, config: str = "") -> None:
        self.directory = directory
        self.sysfs = directory / "sys"
        self.socket = directory / "flapd.sock"
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

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.agent = subprocess.Popen(
                [sys.executable, "-m", "flapd", "run", "--config", str(self.config)],
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

    def get(self, path: str) -> Any:
        return json.loads(self.get_text(path))

    def get_text(self, path: str) -> str:
        connection = UnixConnection(self.socket)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def is_ready(self) -> bool:
        connection = UnixConnection(self.socket)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

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
