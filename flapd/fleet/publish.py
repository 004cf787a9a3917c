"""Publisher: tells the fleet, in a thread with a loop of its own, whatever the network does.

Nothing waits for it. It reads the journal as any client does, and asks the history's writer for
one small write a batch. Events go one after the other, each acknowledged before the next, so that
the stream has them in their order.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import structlog

from flapd.fleet.beat import BEAT_SECONDS, Vitals, heartbeat
from flapd.fleet.connected import Connected, Pauses, growing_pauses
from flapd.fleet.errors import TooLargeError
from flapd.fleet.outbox import Outbox
from flapd.fleet.settings import FleetSettings
from flapd.model.errors import FlapdError
from flapd.model.event import Event
from flapd.model.fleet import FLEET_VERSION, NodeEvent, Publishing
from flapd.store.database import HistoryError
from flapd.store.history_reader import HistoryReader

if TYPE_CHECKING:
    from flapd.fleet.connection import Connection

EVENTS_A_BATCH = 100
_REST = 2
"""Times the length of a full batch, in which nothing is told."""

_log = structlog.get_logger("flapd.fleet")


class Publisher:
    def __init__(
        self,
        settings: FleetSettings,
        node: str,
        history: HistoryReader,
        outbox: Outbox,
        vitals: Callable[[], Vitals],
        *,
        pauses: Pauses = growing_pauses,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        self._settings = settings
        self._node = node
        self._history = history
        self._outbox = outbox
        self._vitals = vitals
        self._pauses = pauses
        self._beat_seconds = beat_seconds
        self._state = Publishing()
        self._never_told = 0
        self._of_others: Counter[str] = Counter()
        """By the name that this node had when it wrote them: nobody may tell under that now."""
        self._more = asyncio.Event()
        self._connected = Connected(settings, node, self._tell, self._state, pauses)

    def start(self) -> None:
        self._connected.start()

    def stop(self, within_seconds: float) -> bool:
        """What is not told by then is told after the next start; False: it has not ended."""
        return self._connected.stop(within_seconds)

    def look(self) -> None:
        """There is more in the journal; from any thread, at once."""
        self._connected.wake(self._more)

    def state(self) -> Publishing:
        """From any thread."""
        with contextlib.suppress(HistoryError):  # the history's own trouble is told elsewhere
            self._state.outbox_events = self._outbox.waiting()
        self._state.events_lost = self._outbox.lost + self._never_told
        return self._state

    def _tell(self, connection: "Connection") -> Sequence[Coroutine[Any, Any, object]]:
        return self._publish(connection), self._beat(connection)

    async def _publish(self, connection: "Connection") -> None:
        """For ever; what the stream does not take is tried again, and nothing overtakes it."""
        pauses = self._pauses()
        while True:
            self._more.clear()
            try:
                await self._publish_all(connection)
            except FlapdError as error:
                self._connected.told_once(str(error))
                await asyncio.sleep(next(pauses))
            else:
                self._state.reason = ""
                pauses = self._pauses()
                await self._more.wait()

    async def _publish_all(self, connection: "Connection") -> None:
        before = self._of_others.copy()
        try:
            await self._publish_batches(connection)
        finally:
            for name, events in (self._of_others - before).items():
                _log.error("events_of_another_name", node=self._node, was=name, not_told=events)

    async def _publish_batches(self, connection: "Connection") -> None:
        while batch := self._outbox.next(EVENTS_A_BATCH):
            began, settled = time.monotonic(), None
            try:
                for seq, event in batch:
                    await self._publish_one(connection, seq, event)
                    settled = seq
            finally:
                if settled is not None:
                    await self._outbox.settle(settled)
            if len(batch) == EVENTS_A_BATCH:  # days of them are there, and jobs run beside it
                await asyncio.sleep(_REST * (time.monotonic() - began))

    async def _publish_one(self, connection: "Connection", seq: int, event: Event) -> None:
        if not self._outbox.is_for_the_fleet(event):
            return
        if event.node != self._node:
            self._of_others[event.node] += 1
            self._never_told += 1
            return
        told = NodeEvent(FLEET_VERSION, self._settings.cluster, self._node, seq, event)
        try:
            await connection.publish(told)
        except TooLargeError as error:
            self._never_told += 1
            _log.error("event_too_large", id=event.id, error=str(error))
        else:
            self._state.events_published += 1
            self._state.reason = ""

    async def _beat(self, connection: "Connection") -> None:
        while True:
            last_seq = None
            with contextlib.suppress(HistoryError):
                last_seq = self._history.last_seq()
            acknowledged = self._outbox.acknowledged
            told = heartbeat(self._settings, self._node, self._vitals(), last_seq, acknowledged)
            await connection.beat(told)
            await asyncio.sleep(self._beat_seconds)
