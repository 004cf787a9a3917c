"""Lanes: the threads that give device readers their turns.

A thread a device would isolate them perfectly, and waking sixteen of them ten times a
second costs several times what reading does. So devices share one lane, the common one,
for as long as all of them are quick, and what isolates them is this:

- One lock guards who is on which lane and whose turn it is. A lane begins a turn only of
  a reader that is on it, and so no reader is ever used by two threads.
- `look`, called by a thread that reads no device, finds a turn on the common lane that
  takes long. That lane is left to the hanging reader alone, and every other gets a lane
  of its own at once: one hang costs the others a fraction of a second, once, and
  several devices that hang together cost no more.
- A reader whose turns end, but are slow again and again, gets a lane of its own too.
- A lane hands its reader back to the common one and ends: a minute after its last slow
  turn, and soon where it was only freed from another that hung.
"""

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Protocol

from flapd.model.times import MILLISECOND_NS, SECOND_NS

HANGS_AFTER_NS = 150 * MILLISECOND_NS
SLOW_NS = 20 * MILLISECOND_NS
"""A turn that takes longer makes the others on its lane late;"""
SLOW_TURNS = 3
"""so many of them"""
SLOW_WITHIN_NS = 10 * SECOND_NS
"""within this are no accident of a busy machine."""
SLOW_ALONE_NS = 60 * SECOND_NS
FREED_ALONE_NS = 5 * SECOND_NS


class Reader(Protocol):
    """What a lane gives turns to."""

    device: str
    has_looked: bool
    """Its ports are known: what it takes to look at first is no slowness."""
    failed_ns: int | None
    """When it failed by a fault of ours."""

    @property
    def next_turn_ns(self) -> int: ...
    def turn(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


class Lane:
    """One thread, the readers it serves, and whose turn it is; all under the lock of the lanes."""

    def __init__(self, lock: threading.Lock, readers: list[Reader]) -> None:
        self.changed = threading.Condition(lock)
        self.readers = readers
        self.turn_of: Reader | None = None
        self.turn_since_ns = 0
        self.alone_until_ns = time.monotonic_ns() + FREED_ALONE_NS
        self.slow_turns: dict[Reader, deque[int]] = {}
        """When the last slow ones of each reader ended."""


class Lanes:
    """All readers of a sampler; used from several threads."""

    def __init__(
        self,
        after_round: Callable[[], None],
        *,
        slow_ns: int = SLOW_NS,
        slow_alone_ns: int = SLOW_ALONE_NS,
    ) -> None:
        """`after_round` is called in a lane's thread whenever it has given turns."""
        self._after_round = after_round
        self._slow_ns = slow_ns
        self._slow_alone_ns = slow_alone_ns
        self._lock = threading.Lock()
        self._common = Lane(self._lock, [])
        self._own: list[Lane] = []
        self._start(self._common)

    def add(self, reader: Reader) -> None:
        with self._lock:
            self._common.readers.append(reader)
            self._common.changed.notify()

    def remove(self, reader: Reader) -> None:
        """It gets no turn any more; after its present one, if it has one, it is closed."""
        reader.stop()
        with self._lock:
            lane = next((each for each in self._all() if reader in each.readers), None)
            if lane is None:
                return  # it failed, and is closed already
            lane.readers.remove(reader)
            lane.slow_turns.pop(reader, None)
            lane.changed.notify()
            has_turn = lane.turn_of is reader
        if not has_turn:
            reader.close()

    def wake(self, reader: Reader) -> None:
        """Its next turn may be due earlier than it was."""
        with self._lock:
            for lane in self._all():
                if reader in lane.readers:
                    lane.changed.notify()

    def look(self) -> None:
        """Where a turn on the common lane hangs, frees all others from it."""
        with self._lock:
            lane = self._common
            hanging = lane.turn_of
            if hanging is None or time.monotonic_ns() - lane.turn_since_ns <= HANGS_AFTER_NS:
                return
            others = [reader for reader in lane.readers if reader is not hanging]
            lane.readers = [reader for reader in lane.readers if reader is hanging]
            lane.slow_turns = {}
            self._own.append(lane)
            self._common = Lane(self._lock, [])
            freed = [self._common, *(self._own_lane(reader) for reader in others)]
        for each in freed:
            self._start(each)

    def _all(self) -> list[Lane]:
        return [self._common, *self._own]

    def _own_lane(self, reader: Reader) -> Lane:
        self._own.append(Lane(self._lock, [reader]))
        return self._own[-1]

    def _start(self, lane: Lane) -> None:
        threading.Thread(target=self._run, args=(lane,), name="lane", daemon=True).start()

    def _run(self, lane: Lane) -> None:
        while self._wait(lane):
            for reader in self._due(lane):
                self._give_turn(lane, reader)
            self._after_round()

    def _due(self, lane: Lane) -> list[Reader]:
        now_ns = time.monotonic_ns()
        with self._lock:
            return [reader for reader in lane.readers if reader.next_turn_ns <= now_ns]

    def _give_turn(self, lane: Lane, reader: Reader) -> None:
        began_ns = time.monotonic_ns()
        with self._lock:
            if reader not in lane.readers:
                return
            lane.turn_of, lane.turn_since_ns = reader, began_ns
        slow_ns = self._slow_ns if reader.has_looked else HANGS_AFTER_NS
        try:
            reader.turn()
        except Exception:  # noqa: BLE001 - the one broad handler: other devices go on
            reader.failed_ns = time.monotonic_ns()
            traceback.print_exc()
        self._end_turn(lane, reader, slow=time.monotonic_ns() - began_ns > slow_ns)

    def _end_turn(self, lane: Lane, reader: Reader, *, slow: bool) -> None:
        own: Lane | None = None
        with self._lock:
            lane.turn_of = None
            if reader.failed_ns is not None and reader in lane.readers:
                lane.readers.remove(reader)
            is_over = reader not in lane.readers
            if slow and not is_over and self._is_slow_again(lane, reader):
                lane.readers.remove(reader)
                own = self._own_lane(reader)
        if is_over:
            reader.close()
        if own is not None:
            self._start(own)

    def _is_slow_again(self, lane: Lane, reader: Reader) -> bool:
        """Whether the reader, whose turn was slow, must not share this lane any more."""
        now_ns = time.monotonic_ns()
        lane.alone_until_ns = now_ns + self._slow_alone_ns
        turns = lane.slow_turns.setdefault(reader, deque(maxlen=SLOW_TURNS))
        turns.append(now_ns)
        is_slow = len(turns) == SLOW_TURNS and now_ns - turns[0] < SLOW_WITHIN_NS
        return is_slow and len(lane.readers) > 1

    def _wait(self, lane: Lane) -> bool:
        """Until somebody's turn is due; False where the lane is of no use any more."""
        with self._lock:
            if lane is not self._common:
                if time.monotonic_ns() > lane.alone_until_ns:
                    self._common.readers += lane.readers
                    self._common.changed.notify()
                    lane.readers = []
                if not lane.readers:
                    self._own.remove(lane)
                    return False
            due_ns = [reader.next_turn_ns for reader in lane.readers]
            wait_seconds = (min(due_ns) - time.monotonic_ns()) / SECOND_NS if due_ns else None
            if wait_seconds is None or wait_seconds > 0:
                lane.changed.wait(wait_seconds)
        return True
