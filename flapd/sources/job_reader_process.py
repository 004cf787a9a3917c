"""The agent's side of its job reader: starts it, listens, remembers how far logs were read.

How far is kept only once what was read up to there is in the history's checkpoint: after a kill
some of it is read again, and faults have the same ids again.
"""

import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import structlog

from flapd.model.observation import Observation
from flapd.sources.child_link import receive
from flapd.sources.child_process import ChildProcess
from flapd.sources.follow.position import Position, decode, encode
from flapd.sources.job_reader_link import (
    POSITIONS_FILE,
    JobReaderHealth,
    LookAtQueuePairs,
    ReaderHealth,
    ReaderOrders,
    told_decoder,
)
from flapd.sources.starting import StartChild, start_own

KEEP_EVERY_SECONDS = 1.0
QUEUE_PAIRS_EVERY_SECONDS = 60.0

_log = structlog.get_logger("flapd.job_reader")


class Durable(msgspec.Struct, frozen=True):
    """How the agent tells what of it survives a kill."""

    call: Callable[[Callable[[], int]], "Future[int]"]
    """Has a function run once all that was put before is taken."""
    checkpoint_soon: Callable[[], None]
    """To be called by such a function."""
    until_ns: Callable[[], int]
    """What was taken before this monotonic time is in the checkpoint."""


class JobReaderProcess:
    """Runs the job reader for as long as the agent lives."""

    def __init__(
        self,
        orders: ReaderOrders,
        put: Callable[[list[Observation]], None],
        durable: Durable,
        start_child: StartChild = start_own,
    ) -> None:
        self._orders = orders
        self._put = put
        self._durable = durable
        self._reads = ReaderHealth()
        self._file = Path(orders.state) / POSITIONS_FILE
        self._kept: dict[str, Position] = {}
        self._newer: dict[str, Position] = {}
        self._waiting: dict[str, Position] = {}
        self._taken: Future[int] | None = None
        """When the engine took what was told before those that wait."""
        self._keep_at = 0.0
        self._asked_at = float("-inf")
        self._child = ChildProcess("job_reader", "flapd.sources.job_reader", self, start_child)

    @property
    def health(self) -> JobReaderHealth:
        return JobReaderHealth(self._child.restarts, self._reads)

    def start(self) -> None:
        with suppress(OSError):  # the first start
            self._kept = decode(self._file.read_bytes())
        self._child.start()

    def stop(self) -> None:
        """Within a second."""
        self._child.stop()

    def look_at_queue_pairs(self) -> None:
        """A port came back; asked at most once a minute, since it costs firmware commands."""
        now = time.monotonic()
        if now - self._asked_at >= QUEUE_PAIRS_EVERY_SECONDS and self._child.send(
            LookAtQueuePairs()
        ):
            self._asked_at = now

    # What a child process is for (child_process.Tasks).

    def begins(self, _pid: int, /) -> list[Any]:
        self._reads = ReaderHealth()
        return [self._orders]

    def hear(self, link: socket.socket, within_seconds: float) -> bool:
        told = receive(link, told_decoder, within_seconds)
        observations: list[Observation] = []
        for message in told:
            if isinstance(message, Position):
                self._newer[message.key] = message
            elif isinstance(message, ReaderHealth):
                self._note(message)
            else:
                observations.append(message)
        if observations:
            self._put(observations)
        self._keep_positions()
        return bool(told)

    def buried(self, pid: int, /, *, is_gone: bool) -> None:
        """One that hangs, in a file or a process, holds nothing that the next one needs."""
        if not is_gone:
            _log.warning("job_reader_left_behind", pid=pid)

    def _note(self, now: ReaderHealth) -> None:
        for name in sorted(now.failures.keys() - self._reads.failures.keys()):
            _log.warning("not_readable", what=name, reason=now.failures[name])
        self._reads = now

    def _keep_positions(self) -> None:
        """Those of which all that was told before is durable."""
        now = time.monotonic()
        if now < self._keep_at:
            return
        self._keep_at = now + KEEP_EVERY_SECONDS
        taken = self._taken
        if taken is not None and taken.done() and self._durable.until_ns() > taken.result():
            self._kept |= self._waiting
            self._write()
            self._taken = None
        if self._taken is None and self._newer:
            self._waiting, self._newer = self._newer, {}
            is_known = self._waiting.keys() <= self._kept.keys()
            self._taken = self._durable.call(time.monotonic_ns if is_known else self._taken_soon)

    def _taken_soon(self) -> int:
        """A log that nobody knows yet would be followed from its end after a kill."""
        self._durable.checkpoint_soon()
        return time.monotonic_ns()

    def _write(self) -> None:
        draft = self._file.with_suffix(".draft")
        try:
            draft.write_bytes(encode(self._kept))
            draft.replace(self._file)
        except OSError as error:
            _log.warning("positions_not_kept", path=str(self._file), error=str(error))
