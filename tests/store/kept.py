"""A history with its keeper, as in the agent: one thread writes; the keeper looks when told."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flapd.model.times import SECOND_NS
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader
from flapd.store.keeper import Keeper
from flapd.store.settings import HistorySettings
from tests.store.rings import BOOT, KEY

AROUND_NS = 30 * SECOND_NS


class Kept:
    def __init__(
        self,
        directory: Path,
        settings: HistorySettings | None = None,
        *,
        boot: str = BOOT,
        present: Callable[[], Mapping[str, str] | None] = lambda: {KEY: "mlx5_0/1"},
    ) -> None:
        self.path = directory / "history.sqlite"
        self.ring = directory / "ring"
        self.history = History(self.path, AROUND_NS)
        self.reader = HistoryReader(self.path)
        self.writer = ThreadPoolExecutor(1)
        self.keeper = Keeper(
            self.path,
            self.history,
            settings or HistorySettings(),
            ring=self.ring,
            boot=boot,
            present=present,
            call=self.writer.submit,
            look_seconds=0.001,
        )

    def look(self, second: float) -> None:
        self.keeper.look(round(second * SECOND_NS))

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.path)
        try:
            return connection.execute(question).fetchall()
        finally:
            connection.close()

    def close(self) -> None:
        self.writer.shutdown()
        self.reader.close()
        self.history.close()


@contextmanager
def kept(
    directory: Path,
    settings: HistorySettings | None = None,
    *,
    boot: str = BOOT,
    present: Callable[[], Mapping[str, str] | None] = lambda: {KEY: "mlx5_0/1"},
) -> Iterator[Kept]:
    whole = Kept(directory, settings, boot=boot, present=present)
    try:
        yield whole
    finally:
        whole.close()
