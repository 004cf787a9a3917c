"""The hub: wires the fleet's stream, view and store together, and answers what is served.

It is a materialised view of the stream: everything in its store can be made again from there, as
far back as the stream goes. So hubs may run side by side, and none has to be kept.
"""

import gc
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import structlog

from flapd.config import Config, ConfigError
from flapd.core.fabric.view import Snapshot
from flapd.core.fleet import FleetTotals, FleetView, Peer, Topology
from flapd.core.fleet.view import KEPT_NS
from flapd.fleet.consume import Consumer
from flapd.fleet.credentials import check_files
from flapd.fleet.topology import topology_of_setting
from flapd.fleet_pump import STREAM, TOTALS, FleetPump
from flapd.model.consuming import Consuming, Position
from flapd.model.errors import FlapdError
from flapd.model.event import Event
from flapd.model.fleet import FLEET_VERSION, NodeEvent
from flapd.model.incident import Incident
from flapd.model.times import SECOND_NS
from flapd.opening import boot_id, opened_history
from flapd.reload import Reload, changed
from flapd.serve.agent import About
from flapd.serve.hub.source import FleetSnapshot, HubHealth
from flapd.store.flap_query import FlapQuery
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader
from flapd.store.job_queries import FaultQuery, IncidentQuery, JobQuery, StallQuery
from flapd.store.keeper import Keeper
from flapd.store.lock import DirectoryLock
from flapd.store.pages import every

STORE = "hub.sqlite"
BEHIND_NS = 10 * SECOND_NS
FORGOTTEN_NS = 30 * 86_400 * SECOND_NS
"""A node that was silent for so long is shown no longer after a start."""
_CACHE_BYTES = 256 << 20
"""Of the store: its indexes are written all over."""
_PAGES_A_CHECKPOINT = 16_384
"""A page that is written by many transactions goes into the database once."""
_SWITCH_SECONDS = 0.0005
"""A page reads some thousand rows, and waits so long after each while the pump works."""
_GARBAGE = (50_000, 20, 20)
"""New objects before cycles are looked for: of events, which stay, there are many and none."""
_PAGE = 1000
_LAST_COMMIT_SECONDS = 2.0
_FLEET_ENDS_WITHIN_SECONDS = 0.5
_KEEPER_ENDS_WITHIN_SECONDS = 0.5
_NO_RING = Path("/nonexistent")

_log = structlog.get_logger("flapd.hub")


class Hub:
    """One running hub; what serving may ask of it."""

    def __init__(self, config: Config, config_path: Path) -> None:
        """Takes the lock and opens the store; FlapdError where either cannot be had."""
        if not config.fleet.servers:
            raise FlapdError("fleet.servers names none, and a hub has no other source")
        check_files(config.fleet)
        self._config = config
        self._reload = Reload()
        self.node = config.node.name
        self._subscribers: list[Callable[[], None]] = []
        self.topology = topology_of_setting(config.hub.topology)
        state = Path(config.paths.state)
        boot = boot_id(Path(config.paths.proc))
        self._lock = DirectoryLock(state, "paths.state")
        store = opened_history(state / STORE, None)
        self.history = HistoryReader(state / STORE)
        self.about = About(
            self.node, boot, time.monotonic_ns(), str(config_path), state / STORE, _NO_RING
        )
        checkpoint = store.checkpoint()
        self._position = _position(checkpoint)
        self._fleet_view = self._view(checkpoint)
        self._pump = FleetPump(
            self._fleet_view,
            store,
            remember=self._remember,
            is_current=self._is_current,
            committed=self._tell_subscribers,
        )
        self._consumer = Consumer(
            config.fleet, self.node, self._position, self._pump.take, self._pump.beat
        )
        self._keeper = self._new_keeper(store, boot)
        store.write(_use_memory)

    def _new_keeper(self, store: History, boot: str) -> Keeper:
        return Keeper(
            self.about.history,
            store,
            self._config.history,
            ring=_NO_RING,
            boot=boot,
            present=lambda: None,
            call=self._pump.call,
        )

    def _view(self, checkpoint: Mapping[str, bytes]) -> FleetView:
        config = self._config
        totals = checkpoint.get(TOTALS)
        return FleetView(
            config.fleet.cluster,
            config.job,
            config.cost,
            self.topology,
            FleetTotals() if totals is None else msgspec.msgpack.decode(totals, type=FleetTotals),
        )

    def _remember(self, view: FleetView) -> None:
        """What the store has of the time that still matters."""
        cluster = self._config.fleet.cluster
        for beat, received_ns in self.history.beats(time.time_ns() - FORGOTTEN_NS):
            self._pump.hear_beat(beat, received_ns)
        since_ns = (self._position.unix_ns or time.time_ns()) - KEPT_NS
        superseded = self.history.superseded_incidents(since_ns)
        view.restore(list(_incidents(self.history, since_ns)), since_ns, superseded=superseded)
        for event in _remembered(self.history, since_ns):
            self._pump.hear(NodeEvent(FLEET_VERSION, cluster, event.node, 0, event))

    def _is_current(self) -> bool:
        state = self._consumer.state
        return state.connected and state.waiting == 0

    def _tell_subscribers(self) -> None:
        for tell in self._subscribers:
            tell()

    def start(self) -> None:
        sys.setswitchinterval(_SWITCH_SECONDS)
        gc.set_threshold(*_GARBAGE)
        self._pump.start()
        self._keeper.start()
        self._consumer.start()

    def stop(self) -> None:
        """None of its parts is waited for longer than a service may take."""
        self._consumer.stop(_FLEET_ENDS_WITHIN_SECONDS)
        self._keeper.stop(_KEEPER_ENDS_WITHIN_SECONDS)
        if not self._pump.stop(_LAST_COMMIT_SECONDS):
            _log.error("pump_left_behind")
        self._lock.close()

    def reload(self, read_config: Callable[[], Config]) -> None:
        """Puts the topology into force, all else at the next start; what is wrong is refused."""
        try:
            config = read_config()
            topology = topology_of_setting(config.hub.topology)
        except FlapdError as error:
            self._reload = msgspec.structs.replace(self._reload, ok=False)
            for fault in error.faults if isinstance(error, ConfigError) else [error]:
                _log.error("configuration_refused", fault=str(fault))
            return
        self._use_topology(config.hub.topology, topology)
        waiting = tuple(changed(self._config, config))
        self._reload = Reload(ok=True, restart_needed=waiting)
        for section in waiting:
            _log.warning("section_needs_restart", section=section)

    def _use_topology(self, file: str, topology: Topology) -> None:
        hub = msgspec.structs.replace(self._config.hub, topology=file)
        self._config = msgspec.structs.replace(self._config, hub=hub)
        self.topology = topology
        self._pump.call(partial(self._fleet_view.use_topology, topology))
        _log.info("topology_read", file=file, ports=len(topology))

    @property
    def failed(self) -> bool:
        return self._pump.health.failed

    @property
    def turned_ns(self) -> int:
        return self._pump.turned_ns

    def status_line(self) -> str:
        nodes = self._pump.snapshot.nodes
        silent = sum(view.health == "unknown" for view in nodes)
        told = [f"{len(nodes)} nodes known, {silent} of them silent"]
        return "; ".join([*told, *self.not_ready()])

    def subscribe(self, committed: Callable[[], None]) -> None:
        self._subscribers = [*self._subscribers, committed]

    def snapshot(self) -> Snapshot:
        """Of ports of its own, which a hub has none of; all that it shows is on disk."""
        return Snapshot()

    @property
    def fleet(self) -> FleetSnapshot:
        return self._pump.snapshot

    @property
    def consuming(self) -> Consuming:
        """With what was refused once it was known who had told of it before."""
        state = self._consumer.state
        refused = state.refused + self._pump.health.refused
        return msgspec.structs.replace(state, refused=refused)

    @property
    def cluster(self) -> str:
        return self._config.fleet.cluster

    @property
    def health(self) -> HubHealth:
        pump = self._pump.health
        return HubHealth(
            pump.write_errors,
            pump.events_not_durable,
            self._reload.ok,
            self._reload.restart_needed,
        )

    def shared_cause_of(self, flap_id: str) -> str | None:
        return self._fleet_view.shared_cause_of(flap_id)

    def peer_of(self, node: str, port: str, guid: str | None) -> Peer | None:
        return self.topology.peer_of(node, port, guid)

    def _is_behind(self) -> bool:
        """Not only by what came just now."""
        until_ns = self._consumer.state.taken_until_unix_ns
        return until_ns is None or time.time_ns() - until_ns > BEHIND_NS

    def not_ready(self) -> list[str]:
        state, reasons = self._consumer.state, []
        if state.reason:
            reasons.append(state.reason)
        if not self._pump.remembers:
            reasons.append("what the store holds is being read")
        if state.waiting and self._is_behind():
            reasons.append(f"{state.waiting} messages of the stream are still to be taken")
        if self._pump.health.events_not_durable:
            reasons.append("the history cannot be written")
        if self._pump.health.failing:
            what = " and ".join(self._pump.health.failing)
            reasons.append(f"{what} cannot be worked out, by a fault of flapd that its log tells")
        return reasons


def _use_memory(writer: sqlite3.Connection) -> None:
    writer.execute(f"PRAGMA cache_size = -{_CACHE_BYTES >> 10}")
    writer.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_A_CHECKPOINT}")


def _position(checkpoint: Mapping[str, bytes]) -> Position:
    kept = checkpoint.get(STREAM)
    return Position() if kept is None else msgspec.json.decode(kept, type=Position)


def _incidents(history: HistoryReader, since_ns: int) -> Iterator[Incident]:
    return every(history.incidents, IncidentQuery(since_unix_ns=since_ns, limit=_PAGE))


def _remembered(history: HistoryReader, since_ns: int) -> Iterator[Event]:
    span: dict[str, Any] = {"since_unix_ns": since_ns, "limit": _PAGE}
    yield from every(history.jobs, JobQuery(**span))
    yield from every(history.flaps, FlapQuery(**span))
    yield from every(history.stalls, StallQuery(**span))
    yield from every(history.faults, FaultQuery(**span))
    yield from history.port_changes(since_ns)
