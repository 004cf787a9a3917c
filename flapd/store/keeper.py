"""The keeper: a thread beside the engine that takes black boxes and lets old things go.

It reads rings and history by itself; what it writes is done by the history's one writer, a
small step at a time, so that no event waits long.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent import futures
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from pathlib import Path

import structlog

from flapd.model.times import SECOND_NS
from flapd.store.black_box import Slot, begin_boxes_at, keep_segments, wanted_slots
from flapd.store.black_box_taking import first_slot, take_segments
from flapd.store.database import (
    HistoryCorruptError,
    HistoryError,
    connect_reader,
    told,
    write_out,
)
from flapd.store.history import History
from flapd.store.lifetime import Now, live_on
from flapd.store.old_rings import remove_old_rings
from flapd.store.retention import Retention, Step
from flapd.store.settings import HistorySettings
from flapd.store.slots import SLOT_NS

LOOK_SECONDS = 5.0
SETTLED_NS = 2 * SECOND_NS
"""After a slot is over, its last sweeps come to their end."""
RETAIN_EVERY_NS = 60 * SECOND_NS
OLD_RINGS_EVERY_NS = 600 * SECOND_NS
_SLOTS_A_STEP = 16
_REST = 4
"""Times the length of a step, in which the writer is left alone."""
_PATIENCE_SECONDS = 60

_log = structlog.get_logger("flapd.keeper")

Caller = Callable[[Callable[[], object]], "Future[object]"]
"""Has something done in the thread of the history's writer."""


class Keeper:
    """Takes black boxes as they become due, and keeps the history within its bounds."""

    def __init__(
        self,
        path: Path,
        history: History,
        settings: HistorySettings,
        *,
        ring: Path,
        boot: str,
        present: Callable[[], Mapping[str, str] | None],
        call: Caller,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """`present` tells the names of the ports that are there by key; None = not known yet."""
        self._path = path
        self._history = history
        self._ring = ring
        self._boot = boot
        self._present = present
        self._call = call
        self._look_seconds = look_seconds
        self._retention = Retention(settings)
        self._retain_at_ns = self._rings_at_ns = 0
        self._trouble = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, within_seconds: float) -> None:
        """Ends after the present step; what is not done is done after the next start."""
        self._stopping.set()
        self._thread.join(within_seconds)

    def _run(self) -> None:
        while not self._stopping.wait(self._look_seconds):
            try:
                self.look(time.monotonic_ns())
            except HistoryCorruptError as error:
                _log.error("black_boxes_end", error=str(error))
                return
            except (HistoryError, TimeoutError, futures.TimeoutError) as error:
                self._told_once(str(error) or "the history's writer does not answer")
            except Exception:  # noqa: BLE001 - the one broad handler: events go on being kept
                _log.exception("keeper_failed")
            else:
                self._trouble = ""

    def _told_once(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            _log.warning("history_upkeep_waits", error=trouble)

    def look(self, now_ns: int) -> None:
        """Does what is due at this monotonic time."""
        with told(self._path), closing(connect_reader(self._path)) as reader:
            self._take(reader, now_ns)
            if now_ns >= self._retain_at_ns:
                self._retain(reader, now_ns)
                self._retain_at_ns = now_ns + RETAIN_EVERY_NS
        present = self._present()
        if present is not None and now_ns >= self._rings_at_ns:
            remove_old_rings(self._ring, self._boot, present, now_ns)
            self._rings_at_ns = now_ns + OLD_RINGS_EVERY_NS

    def _take(self, reader: sqlite3.Connection, now_ns: int) -> None:
        over = (now_ns - SETTLED_NS) // SLOT_NS
        while slots := wanted_slots(reader, self._boot, over, _SLOTS_A_STEP):
            segments = list(take_segments(self._ring, slots))
            lost = self._lost(set(slots) - {segment.slot for segment in segments})
            if lost:
                _log.info("samples_gone", ports=self._names(lost), slots=len(lost))
            self._write(partial(keep_segments, looked_for=slots, found=segments))
            if self._stopping.is_set():
                return

    def _lost(self, lacking: set[Slot]) -> set[Slot]:
        """Those in which there were samples: what was before reading began is not gone."""
        around_ns = self._history.black_box_ns or 0
        for key, boot in {(slot.key, slot.boot) for slot in lacking}:
            number = first_slot(self._ring, key, boot)
            if number is not None:
                first = Slot(key, boot, number)
                self._write(partial(begin_boxes_at, first=first, around_ns=around_ns))
                lacking = {slot for slot in lacking if not _is_before(slot, first)}
        return lacking

    def _names(self, slots: Collection[Slot]) -> list[str]:
        """Of their ports; by its key what is not there any more."""
        present = self._present() or {}
        return sorted({present.get(slot.key, slot.key) for slot in slots})

    def _retain(self, reader: sqlite3.Connection, now_ns: int) -> None:
        self._write(partial(live_on, now=Now(self._boot, now_ns, time.time_ns())))
        for step in self._retention.steps(reader):
            self._write(step)
            if self._stopping.is_set():
                return
        write_out(self._path)

    def _write(self, step: Step) -> None:
        """Has the writer do it, then leaves the writer alone for a while."""
        began_ns = time.monotonic_ns()
        self._call(partial(self._history.write, step)).result(_PATIENCE_SECONDS)
        self._stopping.wait(_REST * (time.monotonic_ns() - began_ns) / SECOND_NS)


def _is_before(slot: Slot, first: Slot) -> bool:
    return (slot.key, slot.boot) == (first.key, first.boot) and slot.number < first.number
