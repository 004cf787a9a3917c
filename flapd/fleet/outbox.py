"""Outbox: what the journal holds and the stream does not have yet.

There is no queue: it is the journal from a cursor on, which is kept in the history and moves
after the stream has acknowledged. So days without a server cost what the history costs anyway,
and an event is lost to the fleet only where retention comes first.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future

import structlog

from flapd.model.event import Event
from flapd.model.fault import Fault
from flapd.store.database import HistoryError
from flapd.store.history_reader import HistoryReader

CURSOR = "outbox"
"""Its part of the history's checkpoint."""

Keep = Callable[[bytes], "Future[object]"]
"""Has the history's writer keep the cursor."""

_log = structlog.get_logger("flapd.fleet")


class Outbox:
    """Used by one thread, but for `waiting`."""

    def __init__(self, history: HistoryReader, kept: bytes | None, keep: Keep) -> None:
        """`kept` is what the checkpoint has; without it, all that the history holds is to come."""
        self.lost = 0
        """Entries that retention removed before they were told."""
        self._history = history
        self._keep = keep
        first = max(0, history.first_seq() - 1)
        self.acknowledged = first if kept is None else min(int(kept), history.last_seq())

    def waiting(self) -> int:
        """Entries that the stream does not have; HistoryError where that cannot be told."""
        gone = self._history.first_seq() - 1
        return max(0, self._history.last_seq() - max(self.acknowledged, gone))

    def next(self, limit: int) -> list[tuple[int, Event]]:
        """The next entries, told or not; HistoryError."""
        self._count_lost()
        return self._history.events_after(self.acknowledged, limit)

    def _count_lost(self) -> None:
        first = self._history.first_seq() or self._history.last_seq() + 1
        lost = first - 1 - self.acknowledged
        if lost > 0:
            self.lost += lost
            self.acknowledged += lost
            _log.error("outbox_outlived", events=lost)

    def is_for_the_fleet(self, event: Event) -> bool:
        """Of faults those that are primary, and what becomes of one that was."""
        if not isinstance(event, Fault) or event.primary:
            return True
        earlier = self._history.revisions_below(event.id, event.revision)
        return len(earlier) < event.revision - 1 or any(map(_is_primary, earlier))

    async def settle(self, seq: int) -> None:
        """The stream has everything up to here, or never will."""
        self.acknowledged = seq
        try:
            await asyncio.wrap_future(self._keep(str(seq).encode()))
        except HistoryError as error:
            # Told again after a restart, which changes nothing.
            _log.warning("outbox_cursor_not_kept", error=str(error))


def _is_primary(event: Event) -> bool:
    return isinstance(event, Fault) and event.primary
