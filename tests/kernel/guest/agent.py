"""Whoever runs flapd in the guest, asked over its socket."""

import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.asking import Asked, wait_for
from tests.kernel.guest.links import downs

PROGRAM = "/opt/flapd/bin/flapd"
PATIENCE_SECONDS = 180.0

T = TypeVar("T")


def copy_history(source: Path, target: Path) -> None:
    """With what is in its write-ahead log alone."""
    with closing(sqlite3.connect(source)) as history, closing(sqlite3.connect(target)) as copy:
        history.backup(copy)


def until(condition: Callable[[], T | None], what: str) -> T:
    return wait_for(condition, what, PATIENCE_SECONDS, every_seconds=0.3)


class Api(Asked):
    """What the agent answers on this socket."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, timeout_seconds=30)

    def ports(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.get("/api/v1/ports")["items"]
        return items

    def port(self, name: str) -> dict[str, Any] | None:
        return next((port for port in self.ports() if port["port"] == name), None)

    def flaps(self, **filters: str) -> list[dict[str, Any]]:
        """Newest first."""
        query = "&".join(f"{name}={value}" for name, value in {"limit": "1000", **filters}.items())
        items: list[dict[str, Any]] = self.get(f"/api/v1/flaps?{query}")["items"]
        return items

    def has_seen_all(self, port: str, netdev: str) -> bool:
        """It is up as far as the agent knows, which has read the kernel's count as it stands."""
        known = self.port(port)
        return (
            known is not None
            and (known["up"], known["state"]) == (True, "ACTIVE")
            and known["witness"]["value"] == downs(netdev)
            and not self.flaps(port=port, status="open")
        )


class Agent(Api):
    """An agent of one's own, with its own state."""

    def __init__(self, directory: Path, config: str) -> None:
        super().__init__(directory / "flapd.sock")
        directory.mkdir()
        self.name = directory.name
        self.history = directory / "history.sqlite"
        self._config = directory / "flapd.toml"
        self._config.write_text(
            f"""
            http.listen = ""
            log.format = "json"
            [paths]
            state = "{directory}"
            ring = "{directory}/ring"
            socket = "{directory}/flapd.sock"
            {config}
            """
        )

    def start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([PROGRAM, "run", "--config", str(self._config)])


class Agents:
    """Several at once, which are shown the same."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self._agents = agents

    @contextmanager
    def running(self) -> Iterator[None]:
        """From when all are ready to their orderly end."""
        processes = [agent.start() for agent in self._agents]
        try:
            for agent in self._agents:
                until(agent.is_ready, f"the agent {agent.name}, ready,")
            yield
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(PATIENCE_SECONDS)

    def each(self, ask: Callable[[Agent], T]) -> dict[str, T]:
        """What each answers, by its name."""
        return {agent.name: ask(agent) for agent in self._agents}

    def until_all(self, condition: Callable[[Agent], T | None], what: str) -> dict[str, T]:
        """What each answers once it answers, by its name."""
        return self.each(lambda agent: until(lambda: condition(agent), f"{what} by {agent.name}"))

    def until_all_have_seen(self, port: str, netdev: str) -> None:
        self.until_all(lambda agent: agent.has_seen_all(port, netdev), f"all of {port} seen")
