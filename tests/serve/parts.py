"""An agent that watches nothing, with a real history, and a real server in front of it."""

import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from flapd.core.fabric.view import LinkTotals, MaintenanceView, PortView, Snapshot
from flapd.model.errors import FlapdError
from flapd.model.event import Event, Outage
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.serve.agent import About, Health, RecordingStatus
from flapd.serve.server import Server, agent_app
from flapd.serve.settings import HttpSettings
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader


class FakeAgent:
    """Says what it was told to say."""

    def __init__(self, directory: Path, outages: Iterable[Outage] = ()) -> None:
        path = directory / "history.sqlite"
        self._path = path
        self._subscribers: list[Callable[[], None]] = []
        self._commit(list(outages))
        self.about = About(
            "node17", "boot-1", time.monotonic_ns(), "/etc/flapd/flapd.toml", path, directory
        )
        self.history = HistoryReader(path)
        self.health = Health()
        self.shown = Snapshot()
        self.reasons: list[str] = []
        self.file = directory / "recording"
        self.status: RecordingStatus | None = None
        self.disk_is_full = False
        self.repairs: list[tuple[str, str]] = []

    def happens(self, *events: Event) -> None:
        """Commits these events, and says so."""
        self._commit(events)
        for tell in self._subscribers:
            tell()

    def _commit(self, events: Sequence[Event]) -> None:
        with closing(History(self._path)) as history:
            history.commit(events, {})

    def subscribe(self, committed: Callable[[], None]) -> None:
        self._subscribers.append(committed)

    def maintain(self, key: str | None, until_ns: int, reason: str) -> tuple[MaintenanceView, ...]:
        until_unix_ns = until_ns - time.monotonic_ns() + time.time_ns()
        planned = (*self.shown.maintenance, MaintenanceView(key, until_unix_ns, reason))
        self.shown = msgspec.structs.replace(self.shown, maintenance=planned)
        return planned

    def end_maintenance(self) -> tuple[MaintenanceView, ...]:
        self.shown = msgspec.structs.replace(self.shown, maintenance=())
        return ()

    def repaired(self, key: str, note: str) -> None:
        self.repairs.append((key, note))

    def snapshot(self) -> Snapshot:
        return self.shown

    def not_ready(self) -> list[str]:
        return self.reasons

    def start_recording(self, seconds: float, max_bytes: int) -> RecordingStatus:
        if self.disk_is_full:
            raise FlapdError("no space is left for a recording")
        self.file.write_bytes(b"")
        until_unix_ns = time.time_ns() + round(seconds * SECOND_NS)
        self.status = RecordingStatus(str(self.file), max_bytes, True, until_unix_ns)
        return self.status

    def recording(self) -> RecordingStatus | None:
        return self.status

    def stop_recording(self) -> RecordingStatus | None:
        if self.status is not None:
            self.status = msgspec.structs.replace(self.status, active=False)
        return self.status


def port(**changes: Any) -> Port:
    fields: dict[str, Any] = {
        "key": "0002:c903:0000:0001/1",
        "device": "mlx5_0",
        "number": 1,
        "link_layer": "InfiniBand",
        "guid": "0002:c903:0000:0001",
        "pci": "0000:3b:00.0",
        "driver": "mlx5_core",
        "netdev": "ib0",
        "witnesses": ("counters/link_downed",),
    }
    return Port(**{**fields, **changes})


def view(a_port: Port | None = None, **changes: Any) -> PortView:
    """A port that is up and has been read a second ago, unless `changes` say else."""
    fields: dict[str, Any] = {
        "present": True,
        "up": True,
        "ever_up": True,
        "values": {
            "state": 4,
            "phys_state": 5,
            "rate_mbps": 400_000,
            "width_lanes": 4,
            "counters/link_downed": 3,
            "counters/port_xmit_data": 2**63 + 1,
            "hw_counters/out_of_sequence": 7,
        },
        "errors": {"counters/port_rcv_errors": "EINVAL"},
        "witness_value": 3,
        "witness_status": "live",
        "witness_resets": 0,
        "saturated": (),
        "readable": True,
        "last_read_ns": time.monotonic_ns() - SECOND_NS,
        "down_since": None,
        "last_down": None,
        "last_down_ns": None,
        "totals": LinkTotals(),
    }
    return PortView(port=a_port or port(), **{**fields, **changes})


@asynccontextmanager
async def serving(
    agent: FakeAgent, directory: Path, listen: str = "127.0.0.1:0", **settings: Any
) -> AsyncIterator[Server]:
    server = Server(agent_app(agent), HttpSettings(listen, **settings), directory / "flapd.sock")
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
        agent.history.close()


@asynccontextmanager
async def over_tcp(
    agent: FakeAgent, directory: Path, **settings: Any
) -> AsyncIterator[aiohttp.ClientSession]:
    async with serving(agent, directory, **settings) as server:
        assert server.tcp_address is not None
        host, number = server.tcp_address
        async with aiohttp.ClientSession(f"http://{host}:{number}") as session:
            yield session


@asynccontextmanager
async def over_socket(agent: FakeAgent, directory: Path) -> AsyncIterator[aiohttp.ClientSession]:
    async with serving(agent, directory, listen=""):
        connector = aiohttp.UnixConnector(str(directory / "flapd.sock"))
        async with aiohttp.ClientSession("http://flapd", connector=connector) as session:
            yield session
