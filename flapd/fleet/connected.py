"""Connected: a thread with a loop of its own, that works over one connection after the other.

Nothing waits for it, whatever the network does.
"""

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from flapd.fleet.settings import FleetSettings
from flapd.model.errors import FlapdError

if TYPE_CHECKING:
    from flapd.fleet.connection import Connection

_LONGEST_PAUSE_SECONDS = 60.0
_WELL_AFTER_SECONDS = 10.0
"""A connection that lasted so long is followed by another without a growing pause."""

Pauses = Callable[[], Iterator[float]]
Work = Callable[["Connection"], Sequence[Coroutine[Any, Any, object]]]
"""What is to be done over a connection, side by side; all of it ends with the first that ends."""

_log = structlog.get_logger("flapd.fleet")


def growing_pauses() -> Iterator[float]:
    """Seconds; spread evenly, so that a cluster that lost its server does not come back at once."""
    for times in count(1):
        yield random.uniform(0, min(_LONGEST_PAUSE_SECONDS, 2.0**times))  # noqa: S311 - no secret


class State(Protocol):
    """How the connection is."""

    connected: bool
    server: str | None
    reason: str


class Connected:
    def __init__(
        self, settings: FleetSettings, name: str, work: Work, state: State, pauses: Pauses
    ) -> None:
        """`name` is who connects, to be told by the server; `work` is called in the loop."""
        self.state = state
        self.stopping = asyncio.Event()
        self._settings = settings
        self._name = name
        self._work = work
        self._pauses = pauses
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run, args=(self._loop,), name="fleet", daemon=True
        )
        self._thread.start()

    def stop(self, within_seconds: float) -> bool:
        """False where it did not end within that time."""
        self.wake(self.stopping)
        if self._thread is None:
            return True
        self._thread.join(within_seconds)
        return not self._thread.is_alive()

    def wake(self, event: asyncio.Event) -> None:
        """From any thread, at once."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(event.set)

    def told_once(self, reason: str) -> None:
        if reason != self.state.reason:
            self.state.reason = reason
            _log.warning("fleet_not_reached", reason=reason)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_until_complete(_first_of(self._go_on(), self.stopping.wait()))
        finally:
            loop.close()

    async def _go_on(self) -> None:
        # Imported here: it takes as long as a flap, and only where there is a fleet.
        from flapd.fleet.connection import connect  # noqa: PLC0415

        pauses = self._pauses()
        while True:
            try:
                connection = await connect(self._settings, self._name)
                if await self._over(connection) >= _WELL_AFTER_SECONDS:
                    pauses = self._pauses()
            except FlapdError as error:
                self._not_connected(str(error))
            except Exception:  # noqa: BLE001 - the one broad handler: a server may answer anything
                self._not_connected("by a fault of flapd or of the server, told in the log")
                _log.exception("fleet_failed")
            else:
                self._not_connected(f"{connection.server}: the connection was lost")
            await asyncio.sleep(next(pauses))

    async def _over(self, connection: "Connection") -> float:
        """Until the connection ends; how many seconds that took."""
        began = time.monotonic()
        self.state.connected, self.state.server = True, connection.server
        self.state.reason = ""
        _log.info("fleet_connected", server=connection.server)
        try:
            await _first_of(*self._work(connection), connection.ended.wait())
        finally:
            await connection.close()
        return time.monotonic() - began

    def _not_connected(self, reason: str) -> None:
        self.state.connected = False
        self.told_once(reason)


async def _first_of(*coroutines: Coroutine[Any, Any, object]) -> None:
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
