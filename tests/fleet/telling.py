"""A node's history with its one writer, and an outbox and publisher on it."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

from flapd.core.fabric.view import Snapshot
from flapd.fleet.beat import Vitals
from flapd.fleet.outbox import CURSOR, Outbox
from flapd.fleet.publish import Publisher
from flapd.fleet.settings import FleetSettings
from flapd.model.event import Event
from flapd.model.fleet import Publishing
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader

NODE = "node17"
BEAT_SECONDS = 0.05


def _vitals() -> Vitals:
    return Vitals(Snapshot(boot="boot-1"), ("why",), None, 5, 6)


class Telling:
    def __init__(
        self, directory: Path, node: str = NODE, vitals: Callable[[], Vitals] = _vitals
    ) -> None:
        path = directory / "history.sqlite"
        self.node, self._vitals = node, vitals
        self.history = History(path)
        self.reader = HistoryReader(path)
        self.writer = ThreadPoolExecutor(1)
        self.publisher: Publisher | None = None

    def commit(self, *events: Event) -> None:
        self.writer.submit(self.history.commit, events, {}).result()
        if self.publisher is not None:
            self.publisher.look()

    def keep(self, cursor: bytes) -> "Future[Any]":
        return self.writer.submit(self.history.commit, [], {CURSOR: cursor})

    def outbox(self) -> Outbox:
        """As after a start of the agent."""
        kept = self.writer.submit(self.history.checkpoint).result()
        return Outbox(self.reader, kept.get(CURSOR), self.keep)

    def publish(self, *servers: str, **settings: Any) -> Publisher:
        self.publisher = Publisher(
            FleetSettings(servers, **settings),
            self.node,
            self.reader,
            self.outbox(),
            self._vitals,
            pauses=lambda: repeat(0.05),
            beat_seconds=BEAT_SECONDS,
        )
        self.publisher.start()
        return self.publisher

    def state(self) -> Publishing:
        assert self.publisher is not None
        return self.publisher.state()

    def stop_publishing(self) -> None:
        if self.publisher is not None:
            self.publisher.stop(5)
        self.publisher = None


@contextmanager
def telling(
    directory: Path, node: str = NODE, vitals: Callable[[], Vitals] = _vitals
) -> Iterator[Telling]:
    found = Telling(directory, node, vitals)
    try:
        yield found
    finally:
        found.stop_publishing()
        found.writer.shutdown()
        found.reader.close()
        found.history.close()
