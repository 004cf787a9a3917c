"""The job reader: a process that looks into other processes, logs and dumps for the agent.

It has the privileges that takes, and holds no socket of HTTP's, no history and no lock. All that
it reads may have been written by anybody: it is bounded, and nothing in it is run. Its main thread
reads nothing that may hang; what is read lies with threads that can be left behind.
"""

import argparse
import os
import select
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from flapd.sources.child_link import Outbox, receive_request
from flapd.sources.follow.dump_watch import DumpWatch
from flapd.sources.follow.following import Following
from flapd.sources.follow.journal import KEY, Journal
from flapd.sources.follow.log_watch import LogWatch
from flapd.sources.follow.position import Position, decode
from flapd.sources.follow.registry import Registry
from flapd.sources.job_reader_link import (
    POSITIONS_FILE,
    LookAtQueuePairs,
    ReaderHealth,
    ReaderOrders,
    request_decoder,
)
from flapd.sources.jobs.attempts import Attempts
from flapd.sources.jobs.finder import Finder
from flapd.sources.jobs.job_watch import JobWatch, has_pod_logs
from flapd.sources.jobs.procfs import ProcFs
from flapd.sources.jobs.queue_pairs import queue_pairs_of

LOOK_EVERY_MS = 200
HEALTH_EVERY_NS = 1_000_000_000
_ROOM_WITHIN_MS = 100
_MOST_LEFT_OUT_TOLD = 10


class Teller:
    """Tells the agent, from all threads; waits while it has no room.

    So logs are read no faster than it takes what they tell. It ends the process with the agent.
    """

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._outbox = Outbox(link)
        self._left_out = 0

    def tell(self, message: Any) -> None:
        """What no message can hold, a fault of ours, is left out: what comes after it is told."""
        try:
            self._tell(message)
        except (OverflowError, UnicodeEncodeError) as error:
            self._left_out += 1
            if self._left_out <= _MOST_LEFT_OUT_TOLD:
                print(f"{type(message).__name__} left out: {error}", file=sys.stderr)  # noqa: T201

    def _tell(self, message: Any) -> None:
        while not self.tell_if_room(message):
            room = select.poll()
            room.register(self._link, select.POLLOUT)
            room.poll(_ROOM_WITHIN_MS)

    def tell_if_room(self, message: Any) -> bool:
        try:
            return self._outbox.put(message)
        except OSError:
            os._exit(0)

    def flush(self) -> None:
        try:
            self._outbox.flush()
        except OSError:
            os._exit(0)


class JobReader:
    """Everything that is read, wired together."""

    def __init__(self, orders: ReaderOrders, teller: Teller) -> None:
        self._orders = orders
        self._teller = teller
        positions = _positions(Path(orders.state))
        registry = Registry(
            lambda job, findings: self._logs.found(job, findings),  # noqa: PLW0108 - made below
            teller.tell,
            positions,
        )
        from_start = orders.logs.from_start
        self._following = Following(
            orders.node, registry, from_start=from_start, after_round=teller.flush
        )
        proc = ProcFs(Path(orders.proc))
        self._jobs = _job_watch(orders, proc, self._following, teller, positions.values())
        self._dumps = DumpWatch(
            self._following,
            proc,
            lambda: self._jobs.jobs,
            self._jobs.job_of,
            teller.tell,
            from_start=from_start,
        )
        self._logs = LogWatch(teller.tell, self._jobs.began_ns, self._dumps.written)
        self._journal = Journal(
            orders.node,
            registry.sieve,
            positions[KEY].cursor if KEY in positions else "",
            partial(self._logs.found, None),
            teller.tell,
        )

    def start(self) -> None:
        for pattern in self._orders.logs.paths:
            self._following.add_pattern(pattern)
        for pattern in self._orders.dumps.paths:
            self._dumps.add_pattern(pattern)
        if self._orders.logs.journal:
            self._journal.start()
        if self._orders.jobs.discover:
            self._jobs.start()

    def ask_queue_pairs(self) -> None:
        self._jobs.ask_queue_pairs()

    def look(self) -> None:
        """What no reading thread can do for itself; to be called all the time."""
        self._following.look()
        self._jobs.look()
        self._teller.flush()

    def tell_health(self) -> None:
        health = self._following.health()
        failures = dict(health.failures)
        if self._orders.logs.journal and self._journal.failure is not None:
            failures[KEY] = self._journal.failure
        self._teller.tell_if_room(
            ReaderHealth(
                files=health.files,
                bytes=health.bytes,
                behind_bytes=health.behind_bytes,
                unknown_warnings=health.unknown_warnings,
                faults_held_back=self._logs.held_back,
                dumps=self._dumps.desk.read,
                failures=failures,
            )
        )


def _job_watch(
    orders: ReaderOrders,
    proc: ProcFs,
    following: Following,
    teller: Teller,
    left: Iterable[Position],
) -> JobWatch:
    attempts, pods = Attempts(), Path(orders.pods)
    finder = Finder(
        proc,
        attempts,
        partial(queue_pairs_of, Path(orders.sysfs)),
        partial(has_pod_logs, pods),
        discover_logs=orders.logs.discover,
    )
    every_seconds = orders.jobs.every.seconds
    return JobWatch(
        finder,
        proc,
        attempts,
        following,
        teller.tell,
        every_seconds=every_seconds,
        pods=pods,
        left=left,
    )


def _positions(state: Path) -> dict[str, Position]:
    try:
        return decode((state / POSITIONS_FILE).read_bytes())
    except OSError:
        return {}


def end_with_trace(failure: threading.ExceptHookArgs) -> None:
    """A thread that fails ends the process: the agent starts a new one and says so."""
    traceback.print_exception(failure.exc_value)
    os._exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="flapd-job-reader")
    parser.add_argument("--link", type=int, required=True, help="descriptor of the agent's socket")
    link = socket.socket(fileno=parser.parse_args().link)
    threading.excepthook = end_with_trace
    orders = receive_request(link, request_decoder)
    if not isinstance(orders, ReaderOrders):
        return
    reader = JobReader(orders, Teller(link))
    reader.start()
    serve(link, reader)
    os._exit(0)  # who hangs in a file can't be waited for


def serve(link: socket.socket, reader: JobReader) -> None:
    """Until the agent ends."""
    poll = select.poll()
    poll.register(link, select.POLLIN | select.POLLHUP)
    health_at_ns = 0
    while True:
        if poll.poll(LOOK_EVERY_MS):
            request = receive_request(link, request_decoder)
            if not isinstance(request, LookAtQueuePairs):
                return
            reader.ask_queue_pairs()
        reader.look()
        if time.monotonic_ns() >= health_at_ns:
            reader.tell_health()
            health_at_ns = time.monotonic_ns() + HEALTH_EVERY_NS


if __name__ == "__main__":
    main()
