"""The agent of one node: wires sources, engine, store and serving together."""

import asyncio
import concurrent.futures
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec
import structlog

from flapd import __version__
from flapd.config import DEFAULT_PATH, Config, ConfigError
from flapd.core.engine import CheckpointError, Engine
from flapd.core.fabric.view import MaintenanceView, Snapshot
from flapd.model.errors import FlapdError
from flapd.model.observation import Expectations, Maintenance, Observation, Repaired
from flapd.model.times import SECOND_NS
from flapd.pump import Pump
from flapd.serve.agent import About, Health, RecordingStatus
from flapd.serve.server import Server
from flapd.service import ServiceManager, status_line
from flapd.sources.discovery import refuse_no_sysfs
from flapd.sources.files import read_text
from flapd.sources.sampler_link import Orders
from flapd.sources.sampler_process import SamplerProcess
from flapd.store.files import is_volatile
from flapd.store.flap_query import FlapQuery
from flapd.store.history import open_history
from flapd.store.history_reader import HistoryReader
from flapd.store.keeper import Keeper
from flapd.store.lock import WAIT_SECONDS, DirectoryLock
from flapd.store.recorder import Recorder, Request
from flapd.store.remembered import Known, remembered_samples

END_WITHIN_SECONDS = 4.5
"""SIGTERM is obeyed within this, whatever hardware or disk do; service managers expect 5 s."""
SHORTEST_STALE_NS = 3 * SECOND_NS
STALE_INTERVALS = 5
"""A port that was not read for so many fast intervals is not known to be up."""
STARTS_WITHIN_SECONDS = 2 * WAIT_SECONDS + 20
"""It waits for two locks, one after the other."""
MOST_OPEN_FLAPS = 1000
"""A port has one at most."""
_LAST_COMMIT_SECONDS = 2.0
_KEEPER_ENDS_WITHIN_SECONDS = 0.5
_CATCH_UP_SECONDS = 1.0
_LOOK_EVERY_SECONDS = 1.0

_log = structlog.get_logger("flapd.node")


RELOADED = ("sampling", "ports")
"""Sections that SIGHUP puts into force; a change of any other needs a restart."""


class Node:
    """One running agent; what serving may ask of it."""

    def __init__(self, config: Config, config_path: Path) -> None:
        """Takes the lock and opens the history; FlapdError where either cannot be had."""
        paths = config.paths
        self._config = config
        self._config_path = config_path
        self._reloaded_ok = True
        self._started_ns = time.monotonic_ns()
        self._subscribers: list[Callable[[], None]] = []
        self._events_told = 0
        self.node = config.node.name
        refuse_no_sysfs(Path(paths.sysfs))
        self._boot = boot = _boot_id(Path(paths.proc))
        self._locks = [
            DirectoryLock(Path(paths.state), "paths.state"),
            DirectoryLock(Path(paths.ring), "paths.ring"),
        ]
        if is_volatile(Path(paths.state)):
            _log.warning("history_will_not_last", path=paths.state)
        history_path = Path(paths.state) / "history.sqlite"
        history, set_aside = open_history(history_path, config.sampling.black_box.ns)
        self._store = history
        if set_aside is not None:
            _log.error("history_was_corrupt", set_aside=str(set_aside))
        self.history = HistoryReader(history_path)
        self._engine = self._engine_from(history.checkpoint())
        open_flaps = self.history.flaps(FlapQuery(status="open", limit=MOST_OPEN_FLAPS)).items
        history.commit(self._engine.orphans(open_flaps), {})
        self._recorder = Recorder(Path(paths.state) / "recording", self.node, __version__)
        self._recorder.resume(self._engine.checkpoint())
        self._pump = Pump(self._engine, history, self._recorder, boot, self._published)
        self._keeper = Keeper(
            history_path,
            history,
            config.history,
            ring=Path(paths.ring),
            boot=boot,
            present=self._present,
            call=self._pump.call,
        )
        self._unseen_by_history = remembered_samples(Path(paths.ring), boot, self._known)
        self._sampler = SamplerProcess(
            self._orders(), self._pump.put, self._known_up, self._take_from_ring
        )

    def _engine_from(self, checkpoint: Mapping[str, bytes]) -> Engine:
        """A checkpoint that cannot be used is told: totals go on, all else begins anew."""
        flap, stale_after_ns = self._config.flap, self._stale_after_ns()
        try:
            return Engine(self.node, flap, checkpoint, stale_after_ns)
        except CheckpointError as error:
            _log.error("checkpoint_unusable", error=str(error))
            return Engine.with_totals_of(self.node, flap, checkpoint, stale_after_ns)

    def _stale_after_ns(self) -> int:
        return max(SHORTEST_STALE_NS, STALE_INTERVALS * self._config.sampling.interval.ns)

    def _known(self, key: str) -> Known | None:
        record = self._engine.port(key)
        if record is None:
            return None
        return Known(record.port.counted_by, record.book.read_until_ns)

    def _published(self, snapshot: Snapshot) -> None:
        """Where the witness can't be counted on, every down must be seen in the state."""
        self._sampler.watch_closely(
            frozenset(view.port.key for view in snapshot.ports if view.wants_state)
        )
        committed = self._pump.health.events_committed
        if committed != self._events_told:
            self._events_told = committed
            for tell in self._subscribers:
                tell()

    def _take_from_ring(self) -> None:
        """What a sampler that ended had read and not told; an engine that hangs is not waited for.

        Everything it did tell is taken by then.
        """
        ring = Path(self._config.paths.ring)
        with contextlib.suppress(concurrent.futures.TimeoutError):
            known = self._pump.call(self._known_by_key).result(_CATCH_UP_SECONDS)
            self._pump.put([*remembered_samples(ring, self._boot, known.get)])

    def _known_by_key(self) -> dict[str, Known]:
        keys = (view.port.key for view in self._pump.snapshot.ports)
        return {key: known for key in keys if (known := self._known(key)) is not None}

    def _known_up(self) -> frozenset[str]:
        return frozenset(view.port.key for view in self._pump.snapshot.ports if view.ever_up)

    def _orders(self) -> Orders:
        config = self._config
        paths = config.paths
        return Orders(paths.sysfs, paths.ring, self._boot, config.sampling, config.ports)

    def _expectations(self) -> Expectations:
        ports = self._config.ports
        gbps = ports.expect_rate_gbps
        return Expectations(ports.expect, None if gbps is None else round(1000 * gbps))

    def _present(self) -> frozenset[str] | None:
        """Keys of the ports that are there; None until discovery has told."""
        snapshot = self._pump.snapshot
        if not snapshot.is_scouted:
            return None
        return frozenset(view.port.key for view in snapshot.ports if view.present)

    def start(self) -> None:
        """What the ring saw between the checkpoint and the end of the last agent comes first."""
        self._pump.start([self._expectations(), *self._unseen_by_history])
        self._sampler.start()
        self._keeper.start()

    def reload(self, read_config: Callable[[], Config]) -> None:
        """Puts a new configuration into force; one that is wrong is refused, the old one stays."""
        try:
            config = read_config()
        except ConfigError as error:
            self._reloaded_ok = False
            for fault in error.faults:
                _log.error("configuration_refused", fault=str(fault))
            return
        self._reloaded_ok = True
        for section in Config.__struct_fields__:
            if getattr(config, section) != getattr(self._config, section):
                event = "section_reloaded" if section in RELOADED else "section_needs_restart"
                _log.info(event, section=section)
        self._config = msgspec.structs.replace(
            self._config, sampling=config.sampling, ports=config.ports
        )
        self._pump.call(partial(self._engine.expect_readings_within, self._stale_after_ns()))
        self._pump.put([self._expectations()])
        self._store.black_box_ns = config.sampling.black_box.ns
        self._sampler.use(self._orders())

    def stop(self) -> None:
        """Ends sampler and engine; neither is waited for longer than a service may take."""
        self._sampler.stop()
        self._keeper.stop(_KEEPER_ENDS_WITHIN_SECONDS)
        if not self._pump.stop(_LAST_COMMIT_SECONDS):
            _log.error("engine_left_behind")
        for lock in self._locks:
            lock.close()

    @property
    def failed(self) -> bool:
        """The engine ended by itself: nothing works any more, and a restart is the way out."""
        return self._pump.health.failed

    @property
    def turned_ns(self) -> int:
        """When the engine last went on."""
        return self._pump.turned_ns

    def status_line(self) -> str:
        return status_line(self._pump.snapshot, self.not_ready())

    @property
    def health(self) -> Health:
        pump = self._pump.health
        return Health(
            sampler_restarts=self._sampler.health.restarts,
            history_write_errors=pump.write_errors,
            events_not_durable=pump.events_not_durable,
            observations_refused=pump.observations_refused,
            config_reloaded_ok=self._reloaded_ok,
            reads=self._sampler.health.reads,
        )

    @property
    def about(self) -> About:
        paths = self._config.paths
        return About(
            node=self.node,
            boot=self._boot,
            started_ns=self._started_ns,
            config=str(self._config_path),
            history=Path(paths.state) / "history.sqlite",
            ring=Path(paths.ring),
        )

    def snapshot(self) -> Snapshot:
        return self._pump.snapshot

    def subscribe(self, committed: Callable[[], None]) -> None:
        self._subscribers = [*self._subscribers, committed]

    def maintain(self, key: str | None, until_ns: int, reason: str) -> tuple[MaintenanceView, ...]:
        return self._taken([Maintenance(key, until_ns, reason, time.monotonic_ns())]).maintenance

    def end_maintenance(self) -> tuple[MaintenanceView, ...]:
        now_ns = time.monotonic_ns()
        keys = {planned.key for planned in self._pump.snapshot.maintenance} | {None}
        return self._taken([Maintenance(key, now_ns, "", now_ns) for key in keys]).maintenance

    def repaired(self, key: str, note: str) -> None:
        self._taken([Repaired(key, note, time.monotonic_ns())])

    def _taken(self, observations: list[Observation]) -> Snapshot:
        """As it stands once the engine has taken these."""
        self._pump.put(observations)
        snapshot: Snapshot = self._pump.call(self._engine.snapshot).result()
        return snapshot

    def not_ready(self) -> list[str]:
        reasons = []
        ports = [view for view in self._pump.snapshot.ports if view.present]
        if not self._pump.snapshot.is_scouted:
            reasons.append("it is not known yet which ports there are")
        reasons += (
            f"{view.port.name} was not read yet"
            for view in ports
            if not view.readable and not view.errors and not self._is_stuck(view.port.device)
        )
        if self._pump.health.events_not_durable:
            reasons.append("the history cannot be written")
        return reasons

    def start_recording(self, seconds: float, max_bytes: int) -> RecordingStatus:
        request = Request(time.time_ns() + round(seconds * SECOND_NS), max_bytes)

        def start() -> None:
            if self._recorder.request is not None:
                raise FlapdError("a recording runs already; only one can")
            self._recorder.start(request, self._engine.checkpoint())

        self._pump.call(start).result()
        return self._recording_status(request)

    def recording(self) -> RecordingStatus | None:
        if not self._recorder.path.exists():
            return None
        return self._recording_status(self._recorder.request)

    def stop_recording(self) -> RecordingStatus | None:
        self._pump.call(self._recorder.stop).result()
        return self.recording()

    def _is_stuck(self, device: str) -> bool:
        return device in self._pump.snapshot.stuck_readers

    def _recording_status(self, request: Request | None) -> RecordingStatus:
        return RecordingStatus(
            path=str(self._recorder.path),
            bytes=self._recorder.path.stat().st_size,
            active=request is not None,
            until_unix_ns=request.until_unix_ns if request is not None else 0,
        )


async def run_node(
    config: Config, read_config: Callable[[], Config], config_path: Path = DEFAULT_PATH
) -> int:
    """The agent until SIGTERM or SIGINT: 0 then, 1 where it could not go on.

    SIGHUP has it read its configuration again, by `read_config`.
    """
    manager = ServiceManager(os.environ)
    manager.starting(STARTS_WITHIN_SECONDS)
    node = Node(config, config_path)
    server = Server(node, config.http, Path(config.paths.socket), config.metrics.counters)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    # Not by the loop's own handlers: those end with the loop, and a second SIGTERM would kill.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _wake(loop, stopping.set))
    reload = partial(loop.run_in_executor, None, _reload, node, read_config, manager)
    signal.signal(signal.SIGHUP, lambda *_: _wake(loop, reload))
    await server.start()
    node.start()
    _log.info("started", node=node.node, version=__version__)
    manager.ready()  # not once all ports are read: dead hardware must not fail the start
    while not stopping.is_set() and not node.failed:
        manager.tell_status(node.status_line())
        manager.feed_watchdog(node.turned_ns)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(stopping.wait(), _LOOK_EVERY_SECONDS)
    status = 1 if node.failed else 0
    end_whatever_happens(status)
    manager.stopping()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    await server.stop()
    await loop.run_in_executor(None, node.stop)
    _log.info("stopped")
    for number in (signal.SIGTERM, signal.SIGINT):  # the interpreter's end would undo handlers
        signal.signal(number, signal.SIG_IGN)
    return status


def _reload(node: Node, read_config: Callable[[], Config], manager: ServiceManager) -> None:
    manager.reloading()
    try:
        node.reload(read_config)
    finally:
        manager.ready()


def _wake(loop: asyncio.AbstractEventLoop, do: Callable[[], object]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and so do we
        loop.call_soon_threadsafe(do)


def _boot_id(proc: Path) -> str:
    """Without it a reboot could not be told from a restart."""
    path = proc / "sys/kernel/random/boot_id"
    boot = read_text(path)
    if not boot:
        raise FlapdError(f"paths.proc: {path} cannot be read, and without it nothing can be dated")
    return boot


def end_whatever_happens(status: int) -> None:
    """A hanging disk or device must not keep the agent from ending."""

    def end() -> None:
        _log.error("ended_by_force")
        os._exit(status)

    timer = threading.Timer(END_WITHIN_SECONDS, end)
    timer.daemon = True
    timer.start()
