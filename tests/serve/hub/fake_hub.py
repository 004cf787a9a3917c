"""A hub that knows what it was told, with a real history."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.fabric.view import Snapshot
from flapd.core.fleet import FleetView, Link, Peer, Topology
from flapd.model.consuming import Consuming
from flapd.model.event import Event
from flapd.model.fleet import FLEET_VERSION, Heartbeat, PortState
from flapd.serve.agent import About
from flapd.serve.hub.source import FleetSnapshot, HubHealth
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader
from flapd.store.intake import Intake


class FakeHub:
    def __init__(self, directory: Path, events: Iterable[Event] = ()) -> None:
        path = directory / "hub.sqlite"
        self._store, self._intake = History(path), Intake()
        self._subscribers: list[Callable[[], None]] = []
        self._view = FleetView("default", JobSettings(), CostSettings())
        self._topology = Topology([Link(Peer("leaf7", "12"), node="node1", port="mlx5_0/1")])
        self.about = About("hub1", "boot-1", time.monotonic_ns(), "hub.toml", path, directory)
        self.history = HistoryReader(path)
        self.cluster = "default"
        self.consuming = Consuming(connected=True, reason="", waiting=0)
        self.health = HubHealth()
        self.shared: dict[str, str] = {}
        self.happens(*events)

    def happens(self, *events: Event) -> None:
        self._store.write(partial(self._intake.take, events=events, checkpoint={}))
        for tell in self._subscribers:
            tell()

    def hears(self, *beats: Heartbeat, ago_seconds: float = 0.0) -> None:
        for beat in beats:
            self._view.beat(beat, time.time_ns() - round(ago_seconds * 1e9))

    @property
    def fleet(self) -> FleetSnapshot:
        return FleetSnapshot(self._view.nodes(time.time_ns()), self._view.totals)

    def snapshot(self) -> Snapshot:
        return Snapshot()

    def not_ready(self) -> list[str]:
        return [self.consuming.reason] if self.consuming.reason else []

    def subscribe(self, committed: Callable[[], None]) -> None:
        self._subscribers.append(committed)

    def peer_of(self, node: str, port: str, guid: str | None) -> Peer | None:
        return self._topology.peer_of(node, port, guid)

    def shared_cause_of(self, flap_id: str) -> str | None:
        return self.shared.get(flap_id)

    def close(self) -> None:
        self.history.close()
        self._store.close()


def port(**changes: Any) -> PortState:
    """Up, unless `changes` say else."""
    fields: dict[str, Any] = {
        "key": "0x1/1",
        "port": "mlx5_0/1",
        "guid": None,
        "up": True,
        "watched": True,
        "readable": True,
        "witness": "live",
        "flapping": False,
        "maintenance": False,
        "grace": False,
    }
    return PortState(**{**fields, **changes})


def beat(node: str, *ports: PortState, **changes: Any) -> Heartbeat:
    fields: dict[str, Any] = {
        "version": FLEET_VERSION,
        "cluster": "default",
        "node": node,
        "flapd": "0.1.0",
        "boot": "boot-1",
        "sent_unix_ns": time.time_ns(),
        "sent_monotonic_ns": time.monotonic_ns(),
        "every_seconds": 30.0,
        "clock": None,
        "last_seq": 7,
        "acknowledged_seq": 5,
        "not_ready": (),
        "blind_to": (),
        "ports": ports or (port(),),
        "jobs": ("4711",),
        "faults": {},
    }
    return Heartbeat(**{**fields, **changes})
