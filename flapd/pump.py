"""The pump: one thread that owns time and order.

It takes observations from one bounded queue, in one sequence, and does with each batch
in this order: records it, steps the engine, commits the events with the checkpoint,
publishes what may be shown. So what is shown is committed, and what was recorded gives
the same events again.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import msgspec
import structlog

from flapd.core.engine import Engine
from flapd.core.fabric.view import Snapshot
from flapd.model.event import Event
from flapd.model.observation import ClockPair, Observation, Tick
from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.store.history import History, HistoryError
from flapd.store.recorder import Recorder

LONGEST_QUEUE = 10_000
LONGEST_BATCH = 500
TICK_NS = SECOND_NS
CLOCK_NS = 10 * SECOND_NS
CHECKPOINT_NS = 30 * SECOND_NS
"""Without events; what happened since is in the ring."""
RETRY_NS = SECOND_NS
"""After a commit that failed."""
PUBLISH_NS = 50 * MILLISECOND_NS

_log = structlog.get_logger("flapd.engine")


class Call(msgspec.Struct, frozen=True):
    """Something to be done between two batches, in the engine's thread."""

    function: Callable[[], Any]
    result: "Future[Any]"


class PumpHealth(msgspec.Struct):
    """What happened to the engine's thread."""

    write_errors: int = 0
    events_not_durable: int = 0
    failed: bool = False


class Pump:
    """Runs the engine; the only one who touches engine, history and recorder."""

    def __init__(self, engine: Engine, history: History, recorder: Recorder, boot: str) -> None:
        self.health = PumpHealth()
        self.snapshot = Snapshot()
        self._engine = engine
        self._history = history
        self._recorder = recorder
        self._boot = boot
        self._queue: queue.Queue[Observation | Call] = queue.Queue(LONGEST_QUEUE)
        self._earlier: list[Observation] = []
        self._uncommitted: list[Event] = []
        self._tick_at_ns = self._clock_at_ns = self._publish_at_ns = 0
        self._checkpoint_at_ns = self._retry_at_ns = 0
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self, earlier: Sequence[Observation] = ()) -> None:
        """Begins, with what was observed before."""
        self._earlier = list(earlier)
        self._thread.start()

    def put(self, observation: Observation) -> None:
        """Waits while the queue is full."""
        self._queue.put(observation)

    def call(self, function: Callable[[], Any]) -> "Future[Any]":
        """Has `function` run between two batches."""
        result: Future[Any] = Future()
        self._queue.put(Call(function, result))
        return result

    def stop(self, within_seconds: float) -> bool:
        """Ends after what is queued, with a last checkpoint; False where that took too long."""
        self.call(self._end)
        self._thread.join(within_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._ending:
                self._turn()
            self._commit(time.monotonic_ns(), force=True)
            self._recorder.close()
        except Exception:  # noqa: BLE001 - the one broad handler: nothing works without it
            self.health.failed = True
            _log.exception("engine_failed")

    def _turn(self) -> None:
        batch, call = self._next_batch()
        now_ns = time.monotonic_ns()
        batch = [*self._timers(now_ns), *self._earlier, *batch]
        self._earlier = []
        if batch:
            self._recorder.write(batch)
            for observation in batch:
                self._uncommitted += self._engine.step(observation)
        told = bool(self._uncommitted)
        self._commit(now_ns, force=False)
        if told or now_ns >= self._publish_at_ns:
            self.snapshot = self._engine.snapshot()
            self._publish_at_ns = now_ns + PUBLISH_NS
        if call is not None:
            _run_call(call)

    def _next_batch(self) -> tuple[list[Observation], Call | None]:
        """What is queued, up to the next call; waits for it until a tick is due."""
        batch: list[Observation] = []
        wait_seconds = max(0, self._tick_at_ns - time.monotonic_ns()) / SECOND_NS
        try:
            item = self._queue.get(timeout=wait_seconds)
            while not isinstance(item, Call):
                batch.append(item)
                if len(batch) == LONGEST_BATCH:
                    return batch, None
                item = self._queue.get_nowait()
        except queue.Empty:
            return batch, None
        return batch, item

    def _timers(self, now_ns: int) -> list[Observation]:
        due: list[Observation] = []
        if now_ns >= self._clock_at_ns:
            self._clock_at_ns = now_ns + CLOCK_NS
            due.append(ClockPair(time.monotonic_ns(), time.time_ns(), self._boot))
        if now_ns >= self._tick_at_ns:
            self._tick_at_ns = now_ns + TICK_NS
            due.append(Tick(now_ns))
        return due

    def _commit(self, now_ns: int, *, force: bool) -> None:
        of_all_ports = force or now_ns >= self._checkpoint_at_ns
        if not of_all_ports and not (self._uncommitted and now_ns >= self._retry_at_ns):
            return
        keys = None if of_all_ports else {event.key for event in self._uncommitted}
        try:
            self._history.commit(self._uncommitted, self._engine.checkpoint(keys))
        except HistoryError as error:
            self.health.write_errors += 1
            self.health.events_not_durable = len(self._uncommitted)
            self._retry_at_ns = self._checkpoint_at_ns = now_ns + RETRY_NS
            _log.error("history_unwritable", error=str(error), events=len(self._uncommitted))
            return
        for event in self._uncommitted:
            _log_event(event)
        self._uncommitted = []
        self.health.events_not_durable = 0
        if of_all_ports:
            self._checkpoint_at_ns = now_ns + CHECKPOINT_NS

    def _end(self) -> None:
        self._ending = True


def _log_event(event: Event) -> None:
    _log.info(
        "outage",
        id=event.id,
        revision=event.revision,
        port=event.port,
        status=event.status,
        kind=event.kind,
        downs=event.count,
        down_seconds_min=event.down_seconds_min,
        down_seconds_max=event.down_seconds_max,
    )


def _run_call(call: Call) -> None:
    try:
        call.result.set_result(call.function())
    except Exception as error:  # noqa: BLE001 - it belongs to who called
        call.result.set_exception(error)
