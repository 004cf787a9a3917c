"""Three real NATS servers on this machine that keep one stream together."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

from nats.errors import Error as NatsError

from tests.fleet.nats_server import STREAM, NatsServer, client, make_stream

SIZE = 3
_PATIENCE_SECONDS = 40.0


class NatsCluster:
    """Each can be killed and started again where it was."""

    def __init__(self, directory: Path) -> None:
        ports = _free_ports(SIZE)
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
        self.servers: dict[str, NatsServer] = {}
        for number, port in enumerate(ports):
            name = f"s{number}"
            config = (
                f'server_name: {name}\njetstream {{ store_dir: "{directory}/{name}/store" }}\n'
                f'cluster {{ name: flapd, listen: "127.0.0.1:{port}", routes: [{routes}], '
                "no_advertise: true }"
            )
            self.servers[name] = NatsServer(directory / name, config)

    @property
    def urls(self) -> list[str]:
        return [server.url for server in self.servers.values()]

    def start(self) -> None:
        for server in self.servers.values():
            server.start()

    def kill(self) -> None:
        for server in self.servers.values():
            server.kill()

    async def make_stream(self) -> None:
        """Once the three have found a leader."""
        await self._patiently(lambda connection: make_stream(connection, num_replicas=SIZE))

    async def leader(self) -> str:
        """Name of the server that leads the stream now."""
        return str(await self._patiently(_leader))

    async def _patiently(self, ask: Any) -> Any:
        """Any server that answers, until one does."""
        deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
        while True:
            for url in self.urls:
                try:
                    connection = await asyncio.wait_for(client(url, connect_timeout=2), 5)
                    try:
                        return await ask(connection)
                    finally:
                        await connection.close()
                except (OSError, NatsError, AssertionError, asyncio.TimeoutError) as error:
                    trouble = error
            assert asyncio.get_running_loop().time() < deadline, trouble
            await asyncio.sleep(0.2)


async def _leader(connection: Any) -> str:
    subject = f"$JS.API.STREAM.INFO.{STREAM['name']}"
    answer = json.loads((await connection.request(subject, b"", timeout=2)).data)
    assert answer.get("cluster", {}).get("leader"), answer
    return str(answer["cluster"]["leader"])


def _free_ports(count: int) -> list[int]:
    trials = [socket.socket() for _ in range(count)]
    try:
        for trial in trials:
            trial.bind(("127.0.0.1", 0))
        return [int(trial.getsockname()[1]) for trial in trials]
    finally:
        for trial in trials:
            trial.close()
