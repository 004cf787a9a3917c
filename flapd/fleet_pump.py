"""The hub's pump: one thread that owns time and order.

With each batch of the stream it does in this order: has the fleet's view hear it, commits events
and the position behind them in one transaction, tells that there is more; then it looks what that
makes known (while more waits, now and then: what a burst means is not worked out again and again)
and commits those incidents. So what is counted is on disk, and being killed loses nothing and
counts nothing twice: what the view had heard is heard again from the history.

No message may end it, since the stream would bring that again after each start. What cannot be
taken by a fault of ours is found by halves, left out and said; the place behind it is kept.
"""

import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import msgspec
import structlog

from flapd.core.fleet import FleetTotals, FleetView
from flapd.model.consuming import Position
from flapd.model.event import Event
from flapd.model.fleet import Heartbeat, NodeEvent
from flapd.model.incident import Incident
from flapd.model.times import SECOND_NS
from flapd.serve.hub.source import FleetSnapshot
from flapd.store.body import kind_of
from flapd.store.history import History, HistoryCorruptError, HistoryError
from flapd.store.in_parts import taken_in_parts
from flapd.store.intake import Intake
from flapd.store.node_beats import Heard, keep_beats
from flapd.store.tellers import not_to_be_told

STREAM, TOTALS = "stream", "totals"
"""Parts of the checkpoint."""
TICK_NS = SECOND_NS
RETRY_SECONDS = 1.0
KEEP_BEATS_NS = 30 * SECOND_NS
MOST_BEATS = 20_000
_REST, _REST_BEHIND = 3, 10
"""So many times what a look took nothing is looked at, also while more waits in the stream."""
_LONGEST_REST_NS = 15 * SECOND_NS
"""What is heard meanwhile is held in memory, however old it is."""

_OF_THE_EVENT = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)
"""Errors of SQLite that come again however often it is tried."""

_Told = TypeVar("_Told", NodeEvent, Event)

_log = structlog.get_logger("flapd.hub")


class FleetPumpHealth(msgspec.Struct):
    """What happened to the pump's thread."""

    write_errors: int = 0
    events_not_durable: int = 0
    """Of the batch that the disk does not take: the stream has them, and nothing else is read."""
    failed: bool = False
    refused: int = 0
    """Events of things that another node had told of; and what cannot be taken, or a job or node
    that cannot be judged, by a fault of ours."""
    failing: tuple[str, ...] = ()
    """What else of its work fails now by a fault of ours: nothing new is told of it."""


class _Batch(msgspec.Struct, frozen=True):
    events: Sequence[NodeEvent]
    position: Position
    is_end: bool
    """There are no more in the stream: it is now there."""
    taken: "Future[None]"


class _Call(msgspec.Struct, frozen=True):
    function: Callable[[], Any]
    result: "Future[Any]"


class FleetPump:
    """The only one who touches the view and the history's writer."""

    def __init__(
        self,
        view: FleetView,
        history: History,
        *,
        remember: Callable[[FleetView], None],
        is_current: Callable[[], bool],
        committed: Callable[[], None],
    ) -> None:
        """`is_current`: nothing waits in the stream, as far as is known now.

        In this thread `remember` has the view hear what the history holds, before all else, and
        `committed` is called each time events are in the history.
        """
        self.health = FleetPumpHealth()
        self.snapshot = FleetSnapshot()
        self.turned_ns = time.monotonic_ns()
        self.remembers = False
        """The view has heard what the history holds."""
        self._view = view
        self._remember = remember
        self._history = history
        self._intake = Intake()
        self._is_current = is_current
        self._committed = committed
        self._queue: queue.SimpleQueue[_Batch | _Call] = queue.SimpleQueue()
        """Never long: one batch is read once the one before is taken."""
        self._beats: deque[Heard] = deque(maxlen=MOST_BEATS)
        self._unkept: dict[str, Heard] = {}
        """Heard, and not yet in the history."""
        self._keep_beats_at_ns = 0
        self._stream_time_ns: int | None = None
        """None: how far the stream goes is not known yet."""
        self._said: set[str] = set()
        """Places that were left out."""
        self._looked_at_ns = 0
        self._look_took_ns = 0
        self._tick_at_ns = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pump", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, within_seconds: float) -> bool:
        """False where that took too long; what was not taken is in the stream."""
        self._stopping.set()
        self.call(lambda: None)
        self._thread.join(within_seconds)
        return not self._thread.is_alive()

    def take(self, events: Sequence[NodeEvent], position: Position, is_end: bool) -> "Future[None]":
        """Done once all of it is on disk."""
        batch = _Batch(events, position, is_end, Future())
        self._queue.put(batch)
        return batch.taken

    def beat(self, beat: Heartbeat) -> None:
        """From any thread, at once; where the disk hangs the newest are kept."""
        self._beats.append((beat, time.time_ns()))

    def hear(self, told: NodeEvent) -> None:
        """In the pump's thread: of what was kept before."""
        try:
            self._view.hear(told)
        except Exception:  # noqa: BLE001 - a fault of ours: it would come again after each start
            self._leave_out(told.event.id, told.node, told.kind)

    def hear_beat(self, beat: Heartbeat, received_ns: int) -> bool:
        """In the pump's thread; False where it was left out."""
        try:
            self._view.beat(beat, received_ns)
        except Exception:  # noqa: BLE001 - as an event
            self._leave_out(None, beat.node, "heartbeat")
            return False
        return True

    def call(self, function: Callable[[], Any]) -> "Future[Any]":
        """Has `function` run between two batches."""
        result: Future[Any] = Future()
        self._queue.put(_Call(function, result))
        return result

    def _run(self) -> None:
        try:
            self._remember(self._view)
            self.remembers = True
            while not self._stopping.is_set():
                self._turn()
                self.turned_ns = time.monotonic_ns()
            self._history.close()
        except Exception:  # noqa: BLE001 - the one broad handler: nothing works without it
            self.health.failed = True
            _log.exception("pump_failed")

    def _turn(self) -> None:
        wait_seconds = max(0, self._tick_at_ns - time.monotonic_ns()) / SECOND_NS
        try:
            item = self._queue.get(timeout=wait_seconds)
        except queue.Empty:
            item = None
        if isinstance(item, _Call):
            _run_call(item)
        elif item is not None:
            self._take_batch(item)
        if time.monotonic_ns() >= self._tick_at_ns:
            self._tick()

    def _take_batch(self, batch: _Batch) -> None:
        if not batch.taken.set_running_or_notify_cancel():
            return  # nobody waits for it any more: the stream brings it again
        position = {STREAM: msgspec.json.encode(batch.position)}
        if self._as_far_as_possible(self._take, batch.events, position):
            self._stream_time_ns = time.time_ns() if batch.is_end else batch.position.unix_ns
            batch.taken.set_result(None)
            if batch.is_end:
                self._look(self._stream_time_ns, _REST)

    def _take(self, events: Sequence[NodeEvent], checkpoint: Mapping[str, bytes]) -> bool:
        refused = self._refusals(events)
        if refused is None:
            return False
        theirs = [told for place, told in enumerate(events) if place not in refused]
        for told in theirs:
            self._view.hear(told)
        kept = [told.event for told in theirs if not _is_claim(told.event)]
        if not self._commit(kept, checkpoint):
            return False
        for place, error in refused.items():
            self._refuse(events[place], error)
        return True

    def _as_far_as_possible(
        self,
        take: Callable[[Sequence[_Told], Mapping[str, bytes]], bool],
        events: Sequence[_Told],
        checkpoint: Mapping[str, bytes],
    ) -> bool:
        """Has all taken but those with which that fails; False where it ends before."""
        try:
            return take(events, checkpoint)
        except HistoryCorruptError:
            raise
        except Exception:
            if not events:
                raise
        are_taken = taken_in_parts(lambda part: take(part, {}), events, self._cannot_take)
        return are_taken and take((), checkpoint)

    def _cannot_take(self, told: NodeEvent | Event) -> None:
        event = told.event if isinstance(told, NodeEvent) else told
        self._leave_out(event.id, event.node, kind_of(event))

    def _leave_out(self, name: str | None, node: str, kind: str) -> None:
        self.health.refused += 1
        _log.exception("left_out", id=name, node=node, kind=kind)

    def _refuse(self, told: NodeEvent, error: str) -> None:
        self.health.refused += 1
        _log.warning("fleet_message_refused", node=told.node, kind=told.kind, error=error)

    def _refusals(self, told: Sequence[NodeEvent]) -> dict[int, str] | None:
        """Why not, by place, where it is not their nodes' to tell; None: it ends before."""
        found: dict[int, str] = {}

        def look(connection: sqlite3.Connection) -> None:
            found.clear()
            found.update(not_to_be_told(connection, [one.event for one in told]))

        return found if self._until_written(look, len(told)) else None

    def _tick(self) -> None:
        self._tick_at_ns = time.monotonic_ns() + TICK_NS
        while self._beats:
            beat, received_ns = self._beats.popleft()
            if self.hear_beat(beat, received_ns):
                self._unkept[beat.node] = (beat, received_ns)
        if self._unkept and time.monotonic_ns() >= self._keep_beats_at_ns:
            self._keep_beats()
        is_current = self._is_current()
        if is_current:
            self._stream_time_ns = time.time_ns()
        if self._stream_time_ns is not None:
            self._look(self._stream_time_ns, _REST if is_current else _REST_BEHIND)
        self._publish()

    def _look(self, stream_time_ns: int, rest: int) -> None:
        """Unless the last look was just now, for how long it took."""
        rest_ns = min(rest * self._look_took_ns, _LONGEST_REST_NS)
        began_ns = time.monotonic_ns()
        if began_ns < self._looked_at_ns + rest_ns:
            return
        told = self._looked(stream_time_ns)
        if told:
            self._as_far_as_possible(self._commit, told, {})
        self._looked_at_ns = time.monotonic_ns()
        self._look_took_ns = self._looked_at_ns - began_ns

    def _looked(self, stream_time_ns: int) -> Sequence[Incident]:
        told: Sequence[Incident] = ()
        with self._going_on("incidents"):
            told = self._view.look(stream_time_ns)
        for place, error in self._view.left_out():
            # What goes on is looked at anew every few seconds.
            if place not in self._said:
                self._said.add(place)
                self.health.refused += 1
                _log.error("left_out", place=place, exc_info=error)
        return told

    @contextmanager
    def _going_on(self, what: str) -> Iterator[None]:
        """What does not work is said once, and shown for as long as it does not."""
        others = tuple(one for one in self.health.failing if one != what)
        try:
            yield
        except Exception:  # noqa: BLE001 - a fault of ours: what is told must still be kept
            if what not in self.health.failing:
                _log.exception("cannot_be_told", what=what)
            self.health.failing = (*others, what)
        else:
            self.health.failing = others

    def _keep_beats(self) -> None:
        """What the disk does not take now comes again with the next."""
        self._keep_beats_at_ns = time.monotonic_ns() + KEEP_BEATS_NS
        with suppress(HistoryError):
            self._history.write(partial(keep_beats, beats=self._unkept.values()))
            self._unkept = {}

    def _publish(self) -> None:
        totals = self._view.totals
        shown = FleetTotals(dict(totals.incidents), dict(totals.gpu_seconds))
        with self._going_on("nodes"):
            self.snapshot = FleetSnapshot(self._view.nodes(time.time_ns()), shown)

    def _commit(self, events: Sequence[Event], checkpoint: Mapping[str, bytes]) -> bool:
        """Tries until the disk takes it; False where it ends before."""
        whole = {**checkpoint, TOTALS: msgspec.msgpack.encode(self._view.totals)}
        step = partial(self._intake.take, events=events, checkpoint=whole)
        if not self._until_written(step, len(events)):
            return False
        self._committed()
        return True

    def _until_written(self, step: Callable[[Any], None], events: int) -> bool:
        """False where it ends before."""
        while not self._is_written(step, events):
            if self._stopping.wait(RETRY_SECONDS):
                return False
        return True

    def _is_written(self, step: Callable[[Any], None], events: int) -> bool:
        try:
            self._history.write(step)
        except HistoryCorruptError:
            self._history.mark_damaged()
            raise  # a new start sets the file aside and reads the stream anew
        except Exception as error:
            self._intake.forget()
            if not isinstance(error, HistoryError) or isinstance(error.__cause__, _OF_THE_EVENT):
                raise
            self.health.write_errors += 1
            if not self.health.events_not_durable:
                _log.error("history_unwritable", error=str(error), events=events)
            self.health.events_not_durable = max(1, events)
            self.turned_ns = time.monotonic_ns()
            return False
        self.health.events_not_durable = 0
        return True


def _is_claim(event: Event) -> bool:
    """What a node says of a job for itself: the fleet's own incidents stand in their place."""
    return isinstance(event, Incident) and not event.nodes


def _run_call(call: _Call) -> None:
    if not call.result.set_running_or_notify_cancel():
        return
    try:
        call.result.set_result(call.function())
    except Exception as error:  # noqa: BLE001 - it belongs to who called
        call.result.set_exception(error)
