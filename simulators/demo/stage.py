"""Stage: fabric, job and agent of one node of the demo, each a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from simulators.demo.child import ready_child
from simulators.demo.processes import OwnProcesses
from simulators.demo.service import Service
from simulators.fabric.mount import fuse_missing
from simulators.fabric.truth import Truth
from simulators.job.log import host_of
from simulators.job.node import node_scenario
from simulators.job.record import Run

RESTART, CHECKPOINT_EVERY = "5m", "1m"
"""What nobody can see of a job; without it flapd assumes more."""


class Stage(Service):
    """Each part lives as long as its context."""

    def __init__(self, directory: Path, port: int, node: int, nats: str | None = None) -> None:
        """`nats` is the URL of a server that is told; None: there is no fleet."""
        super().__init__(directory, "run", port)
        directory.mkdir()
        self.node, self.name = node, host_of(node)
        self._nats = nats
        self._processes = OwnProcesses(directory / "proc")
        self._job: subprocess.Popen[bytes] | None = None
        self._ranks = 0

    @contextmanager
    def fabric(self, run: Run, origin_ns: int) -> Iterator[Truth]:
        """The simulated /sys, by FUSE; plain files where that is not to be had."""
        spec, truth = self.directory / "ports.json", self.directory / "truth.json"
        spec.write_bytes(msgspec.json.encode(node_scenario(run, self.node)))
        command = [sys.executable, "-m", "simulators.fabric", "--until-eof"]
        command += ["--spec", str(spec), "--mount", str(self.directory / "sys")]
        command += ["--truth", str(truth), "--origin-ns", str(origin_ns)]
        if fuse_missing() is not None:
            command.append("--plain")
        with ready_child(command, self.directory / "fabric.log", "simulated fabric"):
            yield msgspec.json.decode(truth.read_bytes(), type=Truth)

    @contextmanager
    def job(self, run: Run, origin_ns: int) -> Iterator[None]:
        """Its ranks on this node as processes, its log and its dumps."""
        spec = self.directory / "job.json"
        spec.write_bytes(msgspec.json.encode(run.spec))
        command = [sys.executable, "-m", "simulators.job", "--until-eof", "--spec", str(spec)]
        command += ["--node", str(self.node), "--live", str(self.directory / "job")]
        command += ["--origin-ns", str(origin_ns)]
        with ready_child(command, self.directory / "job.log", "simulated job") as self._job:
            self._ranks = run.spec.ranks_per_node
            yield

    def show_ranks(self) -> None:
        """To the agent, which else sees none: to be called until all of them run."""
        if self._job is not None and self._ranks > 0:
            self._ranks -= self._processes.take_children(self._job.pid)

    def configuration(self) -> str:
        directory = self.directory
        servers = "" if self._nats is None else f'fleet.servers = ["{self._nats}"]\n'
        return (
            f'node.name = "{self.name}"\n'
            'jobs.every = "1s"\n'
            f'job.restart = "{RESTART}"\njob.checkpoint_interval = "{CHECKPOINT_EVERY}"\n'
            f'dumps.paths = ["{directory}/job/dumps/*"]\n{servers}'
            "[paths]\n"
            f'sysfs = "{directory}/sys"\nproc = "{directory}/proc"\n'
            f'state = "{directory}/state"\nring = "{directory}/ring"\n'
            f'socket = "{directory}/flapd.sock"\n'
        )
