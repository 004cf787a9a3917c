"""Site: what makes a fleet of the demo's nodes: a NATS server, a hub, and all other nodes."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import nats
from nats.errors import Error as NatsError

from simulators.cluster.spec import FleetSpec
from simulators.demo.child import ROOT, child, free_port, ready_child
from simulators.demo.service import LOOK_EVERY_SECONDS, READY_WITHIN_SECONDS, Service
from simulators.demo.stage import CHECKPOINT_EVERY, RESTART
from simulators.errors import SimulatorError

_STREAM = ROOT / "deploy/nats/stream.json"
_SMALL_BYTES = 1 << 28


def nats_server() -> str | None:
    """The program: of PATH, or as `make system-packages` unpacks it; None: it is not here."""
    unpacked = (ROOT / ".programs").glob("*")
    places = [os.environ.get("PATH", ""), *map(str, unpacked)]
    return shutil.which("nats-server", path=os.pathsep.join(places))


class Site(Service):
    """Each part lives as long as its context; the hub comes last."""

    def __init__(self, directory: Path, port: int) -> None:
        super().__init__(directory, "hub", port)
        directory.mkdir()
        self.nats = f"nats://127.0.0.1:{free_port(0)}"

    @contextmanager
    def server(self, program: str) -> Iterator[None]:
        """With the stream of the fleet in it."""
        port = self.nats.rpartition(":")[2]
        command = [program, "-a", "127.0.0.1", "-p", port, "-js"]
        command += ["-sd", str(self.directory / "nats"), "-l", str(self.directory / "nats.log")]
        with child(command, stdin=subprocess.DEVNULL):
            asyncio.run(self._make_stream())
            yield

    @contextmanager
    def others(self, fleet: FleetSpec, origin_ns: int, but: tuple[int, ...]) -> Iterator[None]:
        """All nodes of the fleet `but` those that tell for themselves."""
        spec = self.directory / "fleet.json"
        spec.write_bytes(msgspec.json.encode(fleet))
        command = [sys.executable, "-m", "simulators.cluster", "--until-eof", "--spec", str(spec)]
        command += ["--topology", str(self.directory / "topology.csv"), "--nats", self.nats]
        command += ["--origin-ns", str(origin_ns), "--leave-out", *map(str, but)]
        with ready_child(command, self.directory / "fleet.log", "simulated fleet"):
            yield

    def configuration(self) -> str:
        directory = self.directory
        return (
            'node.name = "hub"\n'
            f'fleet.servers = ["{self.nats}"]\nhub.topology = "{directory}/topology.csv"\n'
            f'job.restart = "{RESTART}"\njob.checkpoint_interval = "{CHECKPOINT_EVERY}"\n'
            "[paths]\n"
            f'state = "{directory}/state"\nsocket = "{directory}/flapd.sock"\n'
        )

    async def _make_stream(self) -> None:
        """SimulatorError where the server does not come, or does not take it."""
        wanted = json.loads(_STREAM.read_text())
        wanted |= {"num_replicas": 1, "max_bytes": _SMALL_BYTES}
        subject = f"$JS.API.STREAM.CREATE.{wanted['name']}"
        deadline = time.monotonic() + READY_WITHIN_SECONDS
        while True:
            try:
                server = await nats.connect(self.nats, allow_reconnect=False, error_cb=_ignore)
                answer = await server.request(subject, json.dumps(wanted).encode())
                await server.close()
            except (OSError, NatsError) as error:
                if time.monotonic() > deadline:
                    raise SimulatorError(f"the NATS server did not come: {error}") from error
                await asyncio.sleep(LOOK_EVERY_SECONDS)
            else:
                break
        told = json.loads(answer.data)
        if "error" in told:
            raise SimulatorError(f"the NATS server makes no stream: {told['error']}")


async def _ignore(_error: Exception) -> None:
    """It is raised as well; the library would print a stack trace."""
