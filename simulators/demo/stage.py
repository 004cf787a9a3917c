"""Stage: fabric, job and agent of the demo, each a process of its own."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from simulators.demo.child import ROOT, child, free_port
from simulators.demo.story import NODE
from simulators.errors import SimulatorError
from simulators.fabric.mount import fuse_missing
from simulators.fabric.truth import Truth
from simulators.job.node import node_scenario
from simulators.job.record import Run

PORT = 19315
BEGINS_AFTER_SECONDS = 3.0
READY_WITHIN_SECONDS = 20.0
LOOK_EVERY_SECONDS = 0.1
RESTART, CHECKPOINT_EVERY = "5m", "1m"
"""What nobody can see of a job; without it flapd assumes more."""


class Stage:
    """In one directory; each part lives as long as its context."""

    def __init__(self, directory: Path) -> None:
        self.config = directory / "flapd.toml"
        self._directory = directory
        self._url = f"http://127.0.0.1:{free_port(PORT, 0)}"

    @property
    def url(self) -> str:
        return self._url

    @contextmanager
    def fabric(self, run: Run) -> Iterator[Truth]:
        """The simulated /sys, by FUSE; plain files where that is not to be had."""
        spec, truth = self._directory / "ports.json", self._directory / "truth.json"
        spec.write_bytes(msgspec.json.encode(node_scenario(run, NODE)))
        command = [sys.executable, "-m", "simulators.fabric", "--until-eof"]
        command += ["--spec", str(spec), "--mount", str(self._directory / "sys")]
        command += ["--truth", str(truth), "--origin-in", str(BEGINS_AFTER_SECONDS)]
        missing = fuse_missing()
        if missing is not None:
            print(f"Simulating with plain files, since there is no FUSE: {missing}.")
            if "package" in missing:
                print("`make system-packages` (needs root) would bring it.")
            command.append("--plain")
        with self._ready(command, "fabric"):
            yield msgspec.json.decode(truth.read_bytes(), type=Truth)

    @contextmanager
    def job(self, run: Run, origin_ns: int) -> Iterator[None]:
        """Its ranks on this node as processes, its log and its dumps."""
        spec = self._directory / "job.json"
        spec.write_bytes(msgspec.json.encode(run.spec))
        command = [sys.executable, "-m", "simulators.job", "--until-eof", "--spec", str(spec)]
        command += ["--node", str(NODE), "--live", str(self._directory / "job")]
        with self._ready([*command, "--origin-ns", str(origin_ns)], "job"):
            yield

    @contextmanager
    def agent(self) -> Iterator[None]:
        """The real one, as a user would start it."""
        with (self._directory / "agent.log").open("wb") as log:
            self._configure()
            with self._started(log) as agent:
                if self._is_ready(agent):
                    yield
                    return
            self._url = f"http://127.0.0.1:{free_port(0)}"  # somebody was faster
            self._configure()
            with self._started(log) as agent:
                if not self._is_ready(agent):
                    told = (self._directory / "agent.log").read_text()
                    raise SimulatorError(f"the agent did not get ready; its log:\n{told}")
                yield

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self._url}/api/v1{path}", timeout=5) as answer:
            return json.load(answer)

    def flapd(self, *arguments: str) -> str:
        """What a command prints on the terminal of who asks the agent."""
        ended = subprocess.run(
            [sys.executable, "-m", "flapd", *arguments, "--config", str(self.config)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.stdout + ended.stderr

    @contextmanager
    def _ready(self, command: list[str], name: str) -> Iterator[None]:
        """A simulator, once it said that it is ready."""
        with (self._directory / f"{name}.log").open("w+b") as log:
            streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
            with child(command, **streams) as process:
                assert process.stdout is not None
                assert process.stdin is not None
                if not process.stdout.readline().startswith(b"ready "):
                    log.seek(0)
                    raise SimulatorError(f"no simulated {name}: {log.read().decode()}")
                yield
                process.stdin.close()

    def _configure(self) -> None:
        directory = self._directory
        self.config.write_text(
            f'http.listen = "{self._url.removeprefix("http://")}"\n'
            "http.open = true  # this machine only, and nothing is secret\n"
            'jobs.every = "1s"\n'
            f'job.restart = "{RESTART}"\njob.checkpoint_interval = "{CHECKPOINT_EVERY}"\n'
            f'dumps.paths = ["{directory}/job/dumps/*"]\n'
            "[paths]\n"
            f'sysfs = "{directory}/sys"\nstate = "{directory}/state"\n'
            f'ring = "{directory}/ring"\nsocket = "{directory}/flapd.sock"\n'
        )

    def _started(self, log: BinaryIO) -> AbstractContextManager["subprocess.Popen[bytes]"]:
        command = [sys.executable, "-m", "flapd", "run", "--config", str(self.config)]
        return child(command, stdin=subprocess.DEVNULL, stderr=log)

    def _is_ready(self, agent: "subprocess.Popen[bytes]") -> bool:
        deadline = time.monotonic() + READY_WITHIN_SECONDS
        while time.monotonic() < deadline and agent.poll() is None:
            try:
                urllib.request.urlopen(f"{self._url}/readyz", timeout=5).close()
            except OSError:
                time.sleep(LOOK_EVERY_SECONDS)
            else:
                return agent.poll() is None
        return False
