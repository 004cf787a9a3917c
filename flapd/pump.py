"""The pump: one thread that owns time and order.

It takes observations from one bounded queue, in one sequence, and does with each batch
in this order: records it, steps the engine, commits the events with the checkpoint,
publishes what may be shown. So what is counted is committed, and what was recorded gives
the same events again.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
import structlog

from flapd.core.engine import Engine
from flapd.core.fabric.view import Snapshot, with_totals_of
from flapd.event_log import EventLog
from flapd.model.errors import FlapdError
from flapd.model.event import Event
from flapd.model.observation import ClockPair, Observation, PortSeen, PortsPresent, Sample, Tick
from flapd.model.times import SECOND_NS
from flapd.store.history import History, HistoryCorruptError, HistoryError
from flapd.store.recorder import Recorder

LONGEST_QUEUE = 1_000
"""Of what comes together; a sampler that finds no room tells it later."""
LONGEST_BATCH = 500
MOST_UNCOMMITTED = 10_000
TICK_NS = SECOND_NS
CLOCK_NS = 10 * SECOND_NS
CHECKPOINT_NS = 30 * SECOND_NS
"""Without events; what happened since is in the ring."""
RETRY_NS = SECOND_NS
"""After a commit that failed."""
PUBLISH_NS = SECOND_NS
"""Where nothing happened; what did is shown at once."""

_T = TypeVar("_T")
_log = structlog.get_logger("flapd.engine")


class EngineBusyError(FlapdError):
    """The engine's thread did not come to what was asked of it; most likely its disk hangs."""


class Call(msgspec.Struct, frozen=True):
    """Something to be done between two batches, in the engine's thread."""

    function: Callable[[], Any]
    result: "Future[Any]"
    observations: list[Observation] = []
    """To be taken, and committed, before."""


class PumpHealth(msgspec.Struct):
    """What happened to the engine's thread."""

    write_errors: int = 0
    events_not_durable: int = 0
    events_committed: int = 0
    events_dropped: int = 0
    """Events that the history will never have: the disk took none, and memory is bounded."""
    observations_refused: int = 0
    """Observations that the engine could not take, a fault of ours."""
    failed: bool = False


class Pump:
    """Runs the engine; the only one who touches engine, history and recorder."""

    def __init__(
        self,
        engine: Engine,
        history: History,
        recorder: Recorder,
        boot: str,
        published: Callable[[Snapshot], None] = lambda _snapshot: None,
    ) -> None:
        """`published` is called in the engine's thread with each new snapshot."""
        self.health = PumpHealth()
        self.snapshot = engine.snapshot()
        self.turned_ns = time.monotonic_ns()
        """When the engine last had taken and committed what there was: at least every second."""
        self.committed_ns = 0
        """What the engine had taken by then is in the history, with its checkpoint."""
        self._durable = self.snapshot
        """The last snapshot of which everything is on disk."""
        self._engine = engine
        self._history = history
        self._recorder = recorder
        self._boot = boot
        self._published = published
        self._queue: queue.Queue[list[Observation] | Call] = queue.Queue(LONGEST_QUEUE)
        self._earlier: list[Observation] = []
        self._uncommitted: list[Event] = []
        self._event_log = EventLog()
        self._tick_at_ns = self._clock_at_ns = self._publish_at_ns = 0
        self._checkpoint_at_ns = self._retry_at_ns = 0
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self, earlier: Sequence[Observation] = ()) -> None:
        """Begins, with what was observed before."""
        self._earlier = list(earlier)
        self._thread.start()

    def put(self, observations: list[Observation]) -> None:
        """Waits while the queue is full."""
        self._queue.put(observations)

    def put_if_room(self, observation: Observation) -> bool:
        """Never waits; False while the queue is full."""
        try:
            self._queue.put_nowait([observation])
        except queue.Full:
            return False
        return True

    def call(self, function: Callable[[], Any]) -> "Future[Any]":
        """Has `function` run between two batches."""
        result: Future[Any] = Future()
        self._queue.put(Call(function, result))
        return result

    def checkpoint_soon(self) -> None:
        """In the next turn, whatever happens; to be called by what `call` runs."""
        self._checkpoint_at_ns = 0

    def ask(
        self,
        function: Callable[[], _T],
        within_seconds: float,
        observations: Sequence[Observation] = (),
    ) -> _T:
        """What `function` gives once the engine has taken `observations`.

        EngineBusyError where that takes longer: then none of it was done, and none will be, unless
        it is being done just now.
        """
        deadline = time.monotonic() + within_seconds
        result: Future[_T] = Future()
        try:
            self._queue.put(Call(function, result, list(observations)), timeout=within_seconds)
            return result.result(max(0, deadline - time.monotonic()))
        except (queue.Full, futures.TimeoutError):
            result.cancel()
            raise EngineBusyError(
                f"the engine does not answer within {within_seconds:g} s; its disk may hang"
            ) from None

    def stop(self, within_seconds: float) -> bool:
        """Ends after what is queued, with a last checkpoint; False where that took too long."""
        deadline = time.monotonic() + within_seconds
        with suppress(queue.Full):
            self._queue.put(Call(self._end, Future()), timeout=within_seconds)
        self._thread.join(max(0, deadline - time.monotonic()))
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._ending:
                self._turn()
                self.turned_ns = time.monotonic_ns()
            self._commit(time.monotonic_ns(), force=True)
            self._publish(time.monotonic_ns())
            self._recorder.close()
            self._history.close()
        except Exception:  # noqa: BLE001 - the one broad handler: nothing works without it
            self.health.failed = True
            _log.exception("engine_failed")

    def _turn(self) -> None:
        waiting, call = self._next_batch()
        if call is not None and call.result.set_running_or_notify_cancel():
            waiting += call.observations
        else:
            call = None
        now_ns = time.monotonic_ns()
        batch = [*self._clock(now_ns), *self._earlier, *waiting, *self._tick(now_ns)]
        self._earlier = []
        if batch:
            self._recorder.write(batch)
        for observation in batch:
            self._step(observation)
        ports_changed = any(isinstance(item, PortSeen | PortsPresent) for item in batch)
        if any(map(_is_news, batch)):
            self._publish_at_ns = 0
        self._commit(now_ns, force=ports_changed)
        self._publish(now_ns)
        if call is not None:
            _run_call(call)

    def _step(self, observation: Observation) -> None:
        """An observation the engine cannot take must not end it: the ring would bring it again."""
        try:
            self._uncommitted += self._engine.step(observation)
        except Exception:  # noqa: BLE001 - a fault of ours, told with its trace and counted
            self.health.observations_refused += 1
            _log.exception("observation_refused", kind=type(observation).__name__)

    def _next_batch(self) -> tuple[list[Observation], Call | None]:
        """What is queued, up to the next call; waits for it until a tick is due."""
        batch: list[Observation] = []
        wait_seconds = max(0, self._tick_at_ns - time.monotonic_ns()) / SECOND_NS
        try:
            item = self._queue.get(timeout=wait_seconds)
            while not isinstance(item, Call):
                batch += item
                if len(batch) >= LONGEST_BATCH:
                    return batch, None
                item = self._queue.get_nowait()
        except queue.Empty:
            return batch, None
        return batch, item

    def _clock(self, now_ns: int) -> list[Observation]:
        if now_ns < self._clock_at_ns:
            return []
        self._clock_at_ns = now_ns + CLOCK_NS
        return [ClockPair(time.monotonic_ns(), time.time_ns(), self._boot)]

    def _tick(self, now_ns: int) -> list[Observation]:
        if now_ns < self._tick_at_ns:
            return []
        self._tick_at_ns = now_ns + TICK_NS
        return [Tick(now_ns)]

    def _commit(self, now_ns: int, *, force: bool) -> None:
        if self._uncommitted or force:
            due = force or now_ns >= self._retry_at_ns
        else:
            due = now_ns >= self._checkpoint_at_ns
        if not due:
            return
        try:
            self._history.commit(self._uncommitted, self._engine.checkpoint())
        except HistoryCorruptError:
            self._history.mark_damaged()
            raise  # a new start sets the file aside; readers hold it open until then
        except HistoryError as error:
            self._not_committed(now_ns, error)
            return
        if self.health.events_not_durable:
            _log.info("history_writable_again", events=len(self._uncommitted))
        self._event_log.tell(self._uncommitted)
        self.health.events_committed += len(self._uncommitted)
        self._uncommitted = []
        self.committed_ns = now_ns
        self.health.events_not_durable = 0
        self._checkpoint_at_ns = now_ns + CHECKPOINT_NS
        self._publish_at_ns = 0

    def _not_committed(self, now_ns: int, error: HistoryError) -> None:
        """What was told waits in memory; of much of it the last revisions, and the newest."""
        self.health.write_errors += 1
        if not self.health.events_not_durable:
            _log.error("history_unwritable", error=str(error), events=len(self._uncommitted))
        if len(self._uncommitted) > MOST_UNCOMMITTED:
            self._drop_oldest()
        self.health.events_not_durable = len(self._uncommitted)
        self._retry_at_ns = self._checkpoint_at_ns = now_ns + RETRY_NS

    def _drop_oldest(self) -> None:
        latest = _latest(self._uncommitted)
        self._uncommitted = latest[-MOST_UNCOMMITTED:]
        dropped = len(latest) - len(self._uncommitted)
        if dropped:
            self.health.events_dropped += dropped
            _log.error("events_dropped", events=dropped, in_all=self.health.events_dropped)

    def _publish(self, now_ns: int) -> None:
        """Totals hold only what is on disk: they must not fall when we are killed."""
        if now_ns < self._publish_at_ns and not self._uncommitted:
            return
        self._publish_at_ns = now_ns + PUBLISH_NS
        snapshot = self._engine.snapshot()
        if self._uncommitted:
            snapshot = with_totals_of(self._durable, snapshot)
            undurable = tuple(_latest(self._uncommitted))
            snapshot = msgspec.structs.replace(snapshot, undurable=undurable)
        else:
            self._durable = snapshot
        self.snapshot = snapshot
        self._published(snapshot)

    def _end(self) -> None:
        self._ending = True


def _is_news(observation: Observation) -> bool:
    """More than that time passes and counters count."""
    if isinstance(observation, Sample):
        return bool(observation.errors)
    return not isinstance(observation, Tick | ClockPair)


def _latest(events: Sequence[Event]) -> list[Event]:
    """The last revision of each, in the order in which they were first told."""
    return list({event.id: event for event in events}.values())


def _run_call(call: Call) -> None:
    try:
        call.result.set_result(call.function())
    except Exception as error:  # noqa: BLE001 - it belongs to who called
        call.result.set_exception(error)
