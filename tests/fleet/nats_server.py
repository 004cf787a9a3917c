"""A real NATS server, which can be killed and started again where it was."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client

from tests.programs import program

ROOT = Path(__file__).parent.parent.parent
STREAM = json.loads((ROOT / "deploy/nats/stream.json").read_text())
PATIENCE_SECONDS = 20.0


class NatsServer:
    """On a port of its own, with JetStream in `directory`."""

    def __init__(self, directory: Path, config: str = "") -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "log").touch()
        self._config = directory / "nats-server.conf"
        store = f'jetstream {{ store_dir: "{directory}/store" }}'
        self._config.write_text(config if "jetstream" in config else f"{store}\n{config}")
        self._port = -1
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    def start(self) -> None:
        ports = self._directory / "ports"
        ports.mkdir(exist_ok=True)
        command = [program("nats-server"), "-c", str(self._config), "-a", "127.0.0.1"]
        command += ["-p", str(self._port), "-l", str(self._directory / "log")]
        command += ["--ports_file_dir", str(ports)]
        self._process = subprocess.Popen(command)
        file = ports / f"nats-server_{self._process.pid}.ports"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._port < 0 or not self._answers():
            assert time.monotonic() < deadline, (self._directory / "log").read_text()
            assert self._process.poll() is None, "nats-server ended"
            time.sleep(0.02)
            if file.exists() and file.stat().st_size:
                (url,) = json.loads(file.read_text())["nats"]
                self._port = int(url.rpartition(":")[2])

    def _answers(self) -> bool:
        """It says that it takes clients, of this start."""
        return "Server is ready" in (self._directory / "log").read_text()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        (self._directory / "log").write_text("")

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitpid(self._process.pid, os.WUNTRACED)  # until all its threads stand still


async def client(url: str, **options: Any) -> Client:
    async def ignored(_error: Exception) -> None:
        """What is refused is told to whoever asked."""

    return await nats.connect(url, error_cb=ignored, allow_reconnect=False, **options)


async def settled(connection: Client) -> None:
    """The server has taken all that was asked and told so far.

    The client's ping overtakes what it has not written yet; it has by the time of the pong.
    """
    await connection.flush()
    await connection.flush()


async def make_stream(connection: Client, **changes: Any) -> None:
    """The stream as it is deployed, on one server."""
    asked = {**STREAM, "num_replicas": 1, "max_bytes": 1 << 28, **changes}
    answer = await connection.request(
        f"$JS.API.STREAM.CREATE.{STREAM['name']}", json.dumps(asked).encode()
    )
    told = json.loads(answer.data)
    assert "error" not in told, told


async def messages(connection: Client) -> list[Any]:
    """All that the stream holds, in its order."""
    stream = STREAM["name"]
    state = (await connection.jetstream().stream_info(stream)).state
    return [
        await connection.jetstream().get_msg(stream, seq)
        for seq in range(state.first_seq, state.last_seq + 1)
        if state.messages
    ]
