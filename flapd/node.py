"""The agent of one node: wires sources, engine and store together, and answers what is served."""

import concurrent.futures
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from flapd import __version__
from flapd.config import Config, ConfigError
from flapd.core.engine import CheckpointError, Engine
from flapd.core.fabric.view import MaintenanceView, Snapshot
from flapd.fleet.beat import Vitals
from flapd.fleet.credentials import check_files
from flapd.fleet.outbox import CURSOR, Outbox
from flapd.fleet.publish import Publisher
from flapd.model.errors import FlapdError
from flapd.model.observation import Maintenance, Observation, Repaired
from flapd.model.times import SECOND_NS
from flapd.opening import boot_id, going_on, locks, opened_history
from flapd.orders import expectations, reader_orders, sampler_orders
from flapd.pump import EngineBusyError, Pump
from flapd.reload import RELOADED, Reload, changed
from flapd.serve.agent import About, Health, RecordingStatus
from flapd.serve.errors import ApiError
from flapd.service import status_line
from flapd.sources.discovery import refuse_no_sysfs
from flapd.sources.job_reader_process import Durable, JobReaderProcess
from flapd.sources.kernel_clock import clock_state
from flapd.sources.kernel_sources import silent_sources
from flapd.sources.link_events import LinkEvents
from flapd.sources.sampler_link import Orders
from flapd.sources.sampler_process import SamplerProcess
from flapd.sources.settings import SourcesSettings
from flapd.sources.starting import StartChild, start_own
from flapd.store.history_reader import HistoryReader
from flapd.store.keeper import Keeper
from flapd.store.recorder import Recorder, Request
from flapd.store.remembered import Known, remembered_samples

SHORTEST_STALE_NS = 3 * SECOND_NS
STALE_INTERVALS = 5
"""A port that was not read for so many fast intervals is not known to be up."""
_LAST_COMMIT_SECONDS = 2.0
_KEEPER_ENDS_WITHIN_SECONDS = 0.5
_FLEET_ENDS_WITHIN_SECONDS = 0.5
_CATCH_UP_SECONDS = 1.0
ENGINE_ANSWERS_WITHIN_SECONDS = 2.0
"""What is asked of it over HTTP holds a thread of the server no longer."""

NOT_USED_YET = "it has not been used yet"

_T = TypeVar("_T")

_log = structlog.get_logger("flapd.node")


class Node:
    """One running agent; what serving may ask of it."""

    def __init__(
        self, config: Config, config_path: Path, start_child: StartChild = start_own
    ) -> None:
        """Takes the lock and opens the history; FlapdError where either cannot be had."""
        self._config = config
        self._config_path = config_path
        self._reload = Reload()
        self._started_ns = time.monotonic_ns()
        self._subscribers: list[Callable[[], None]] = []
        self._events_told = 0
        self.node = config.node.name
        paths = config.paths
        refuse_no_sysfs(Path(paths.sysfs))
        self._silent = silent_sources(config.sources, paths)
        self._boot = boot = boot_id(Path(paths.proc))
        self._locks = locks(paths)
        history_path = Path(paths.state) / "history.sqlite"
        self._store = opened_history(history_path, config.sampling.black_box.ns)
        self.history = HistoryReader(history_path)
        self._engine = self._engine_from(self._store.checkpoint())
        orphans = self._engine.orphans(going_on(self.history))
        self._store.commit(orphans, self._engine.checkpoint() if orphans else {})
        self._recorder = Recorder(Path(paths.state) / "recording", self.node, __version__)
        self._recorder.resume(self._engine.checkpoint())
        self._pump = Pump(self._engine, self._store, self._recorder, boot, self._published)
        self._keeper = self._made_keeper(history_path)
        self._unseen_by_history = remembered_samples(Path(paths.ring), boot, self._known)
        self._sampler = SamplerProcess(
            self._orders(), self._pump.put, self._known_up, self._take_from_ring, start_child
        )
        self._links = self._made_links()
        self._down: frozenset[str] = frozenset()
        self._job_reader = self._made_job_reader(start_child)
        self._publisher = self._publisher_from(self._store.checkpoint())

    def _made_keeper(self, history_path: Path) -> Keeper:
        return Keeper(
            history_path,
            self._store,
            self._config.history,
            ring=Path(self._config.paths.ring),
            boot=self._boot,
            present=self._present,
            call=self._pump.call,
        )

    def _made_links(self) -> LinkEvents:
        return LinkEvents(
            Path(self._config.paths.sysfs),
            self._silent.get("rtnetlink"),
            self._pump.put_if_room,
            self._sampler.read_now,
        )

    def _made_job_reader(self, start_child: StartChild) -> JobReaderProcess:
        durable = Durable(
            self._pump.call, self._pump.checkpoint_soon, lambda: self._pump.committed_ns
        )
        return JobReaderProcess(reader_orders(self._config), self._pump.put, durable, start_child)

    def _publisher_from(self, checkpoint: Mapping[str, bytes]) -> Publisher | None:
        """None where there is no fleet; FlapdError where its files are of no use."""
        settings = self._config.fleet
        if not settings.servers:
            return None
        check_files(settings)
        outbox = Outbox(
            self.history,
            checkpoint.get(CURSOR),
            lambda cursor: self._pump.call(partial(self._store.commit, [], {CURSOR: cursor})),
        )
        publisher = Publisher(settings, self.node, self.history, outbox, self._vitals)
        self.subscribe(publisher.look)
        return publisher

    def _vitals(self) -> Vitals:
        return Vitals(
            self._pump.snapshot,
            tuple(self.not_ready()),
            clock_state(),
            time.time_ns(),
            time.monotonic_ns(),
        )

    def _engine_from(self, checkpoint: Mapping[str, bytes]) -> Engine:
        """A checkpoint that cannot be used is told: totals go on, all else begins anew."""
        flap, stale_after_ns = self._config.flap, self._stale_after_ns()
        job, cost = self._config.job, self._config.cost
        try:
            return Engine(self.node, flap, checkpoint, stale_after_ns, job=job, cost=cost)
        except CheckpointError as error:
            _log.error("checkpoint_unusable", error=str(error))
            return Engine.with_totals_of(
                self.node, flap, checkpoint, stale_after_ns, job=job, cost=cost
            )

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
        self._links.follow(view.port for view in snapshot.ports if view.last_read_ns is not None)
        self._links.look()
        down = frozenset(view.port.key for view in snapshot.ports if view.up is False)
        if self._down - down:
            self._job_reader.look_at_queue_pairs()
        self._down = down
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
        return sampler_orders(self._config, self._boot, self._silent)

    def _present(self) -> dict[str, str] | None:
        """Names of the ports that are there by key; None until discovery has told."""
        snapshot = self._pump.snapshot
        if not snapshot.is_scouted:
            return None
        return {view.port.key: view.port.name for view in snapshot.ports if view.present}

    def start(self) -> None:
        """What the ring saw between the checkpoint and the end of the last agent comes first."""
        self._pump.start([expectations(self._config.ports), *self._unseen_by_history])
        self._sampler.start()
        self._links.start()
        self._job_reader.start()
        self._keeper.start()
        if self._publisher is not None:
            self._publisher.start()

    def reload(self, read_config: Callable[[], Config]) -> None:
        """Puts a new configuration into force; one that is wrong is refused, the old one stays."""
        try:
            config = read_config()
        except ConfigError as error:
            self._reload = msgspec.structs.replace(self._reload, ok=False)
            for fault in error.faults:
                _log.error("configuration_refused", fault=str(fault))
            return
        sections = changed(self._config, config)
        waiting = tuple(section for section in sections if section not in RELOADED)
        self._reload = Reload(ok=True, restart_needed=waiting)
        for section in sections:
            if section in waiting:
                _log.warning("section_needs_restart", section=section)
            else:
                _log.info("section_reloaded", section=section)
        self._config = msgspec.structs.replace(
            self._config, sampling=config.sampling, ports=config.ports
        )
        self._pump.call(partial(self._engine.expect_readings_within, self._stale_after_ns()))
        self._pump.put([expectations(config.ports)])
        self._store.black_box_ns = config.sampling.black_box.ns
        self._sampler.use(self._orders())

    def stop(self) -> None:
        """Ends sampler and engine; neither is waited for longer than a service may take."""
        if self._publisher is not None:
            self._publisher.stop(_FLEET_ENDS_WITHIN_SECONDS)
        self._links.stop()
        self._sampler.stop()
        self._job_reader.stop()
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
            events_dropped=pump.events_dropped,
            observations_refused=pump.observations_refused,
            config_reloaded_ok=self._reload.ok,
            restart_needed=self._reload.restart_needed,
            reads=self._sampler.health.reads,
            job_reader=self._job_reader.health,
            sources=self._sources(),
            fleet=None if self._publisher is None else self._publisher.state(),
        )

    def _sources(self) -> dict[str, dict[str, str]]:
        """What the sampler has not told of yet is not used yet."""
        by_device = self._sampler.health.sources
        return {
            view.port.key: {
                **dict.fromkeys(SourcesSettings.__struct_fields__, NOT_USED_YET),
                **self._silent,
                **by_device.get(view.port.device, {}),
                "rtnetlink": self._links.of(view.port),
            }
            for view in self._pump.snapshot.ports
        }

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
        planned = Maintenance(key, until_ns, reason, time.monotonic_ns())
        return self._ask(self._engine.snapshot, [planned]).maintenance

    def end_maintenance(self) -> tuple[MaintenanceView, ...]:
        now_ns = time.monotonic_ns()
        # Of what is published some may be missing that began just now.
        going_on = self._ask(self._engine.snapshot).maintenance
        keys = {planned.key for planned in going_on} | {None}
        ended = [Maintenance(key, now_ns, "", now_ns) for key in keys]
        return self._ask(self._engine.snapshot, ended).maintenance

    def repaired(self, key: str, note: str) -> None:
        self._ask(self._engine.snapshot, [Repaired(key, note, time.monotonic_ns())])

    def _ask(self, function: Callable[[], _T], observations: Iterable[Observation] = ()) -> _T:
        """What `function` gives in the engine's thread, once it has taken the observations."""
        try:
            return self._pump.ask(function, ENGINE_ANSWERS_WITHIN_SECONDS, [*observations])
        except EngineBusyError as error:
            raise ApiError("unavailable", str(error)) from error

    def not_ready(self) -> list[str]:
        reasons = []
        snapshot = self._pump.snapshot
        unseen = snapshot.blind | snapshot.stuck_readers.keys()
        if not snapshot.is_scouted:
            reasons.append("it is not known yet which ports there are")
        reasons += (
            f"{view.port.name} was not read yet"
            for view in snapshot.ports
            if view.present and not view.readable and not view.errors
            if view.port.device not in unseen
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

        self._ask(start)
        return self._recording_status(request)

    def recording(self) -> RecordingStatus | None:
        if not self._recorder.path.exists():
            return None
        return self._recording_status(self._recorder.request)

    def stop_recording(self) -> RecordingStatus | None:
        self._ask(self._recorder.stop)
        return self.recording()

    def _recording_status(self, request: Request | None) -> RecordingStatus:
        return RecordingStatus(
            path=str(self._recorder.path),
            bytes=self._recorder.path.stat().st_size,
            active=request is not None,
            until_unix_ns=request.until_unix_ns if request is not None else 0,
        )
