"""Publisher: tells the fleet, in a thread with a loop of its own, whatever the network does.

Nothing waits for it. It reads the journal as any client does, and asks the history's writer for
one small write a batch. Events go one after the other, each acknowledged before the next, so that
the stream has them in their order.
"""

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import structlog

from flapd.fleet.beat import BEAT_SECONDS, Vitals, heartbeat
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
_LONGEST_PAUSE_SECONDS = 60.0
_WELL_AFTER_SECONDS = 10.0
"""A connection that lasted so long is followed by another without a growing pause."""

Pauses = Callable[[], Iterator[float]]

_log = structlog.get_logger("flapd.fleet")


def growing_pauses() -> Iterator[float]:
    """Seconds; spread evenly, so that a cluster that lost its server does not come back at once."""
    for times in count(1):
        yield random.uniform(0, min(_LONGEST_PAUSE_SECONDS, 2.0**times))  # noqa: S311 - no secret


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
        self._too_large = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._more = asyncio.Event()
        self._stopping = asyncio.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run, args=(self._loop,), name="fleet", daemon=True
        )
        self._thread.start()

    def stop(self, within_seconds: float) -> None:
        """What is not told by then is told after the next start."""
        self._wake(self._stopping)
        if self._thread is not None:
            self._thread.join(within_seconds)

    def look(self) -> None:
        """There is more in the journal; from any thread, at once."""
        self._wake(self._more)

    def state(self) -> Publishing:
        """From any thread."""
        with contextlib.suppress(HistoryError):  # the history's own trouble is told elsewhere
            self._state.outbox_events = self._outbox.waiting()
        self._state.events_lost = self._outbox.lost + self._too_large
        return self._state

    def _wake(self, event: asyncio.Event) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(event.set)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_until_complete(self._first_of(self._go_on(), self._stopping.wait()))
        finally:
            loop.close()

    async def _first_of(self, *coroutines: Coroutine[Any, Any, object]) -> None:
        """Ends all with the first that ends, as that one does."""
        tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _go_on(self) -> None:
        # Imported here: it takes as long as a flap, and only where there is a fleet.
        from flapd.fleet.connection import connect  # noqa: PLC0415

        pauses = self._pauses()
        while True:
            try:
                connection = await connect(self._settings, self._node)
                if await self._tell(connection) >= _WELL_AFTER_SECONDS:
                    pauses = self._pauses()
            except FlapdError as error:
                self._not_connected(str(error))
            except Exception:  # noqa: BLE001 - the one broad handler: a server may answer anything
                self._not_connected("by a fault of flapd or of the server, told in the log")
                _log.exception("fleet_failed")
            else:
                self._not_connected(f"{connection.server}: the connection was lost")
            await asyncio.sleep(next(pauses))

    async def _tell(self, connection: "Connection") -> float:
        """Until the connection ends; how many seconds that took."""
        began = time.monotonic()
        self._state.connected, self._state.server = True, connection.server
        self._state.reason = ""
        _log.info("fleet_connected", server=connection.server)
        try:
            publish, beat = self._publish(connection), self._beat(connection)
            await self._first_of(publish, beat, connection.ended.wait())
        finally:
            await connection.close()
        return time.monotonic() - began

    def _not_connected(self, reason: str) -> None:
        self._state.connected = False
        self._told_once(reason)

    def _told_once(self, reason: str) -> None:
        if reason != self._state.reason:
            self._state.reason = reason
            _log.warning("fleet_not_told", reason=reason)

    async def _publish(self, connection: "Connection") -> None:
        """For ever; what the stream does not take is tried again, and nothing overtakes it."""
        pauses = self._pauses()
        while True:
            self._more.clear()
            try:
                await self._publish_all(connection)
            except FlapdError as error:
                self._told_once(str(error))
                await asyncio.sleep(next(pauses))
            else:
                self._state.reason = ""
                pauses = self._pauses()
                await self._more.wait()

    async def _publish_all(self, connection: "Connection") -> None:
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
        told = NodeEvent(FLEET_VERSION, self._settings.cluster, self._node, seq, event)
        try:
            await connection.publish(told)
        except TooLargeError as error:
            self._too_large += 1
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
