"""The real job reader as a process, with the test as its agent."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from flapd.model.fault import Fault
from flapd.model.observation import FaultRead
from flapd.sources.child_link import make_link, receive, send
from flapd.sources.job_reader_link import LookAtQueuePairs, ReaderOrders, Told, told_decoder

ROOT = Path(__file__).parent.parent.parent
PATIENCE_SECONDS = 20.0
_T = TypeVar("_T")


class RunningReader:
    def __init__(self, orders: ReaderOrders) -> None:
        self._link, theirs = make_link()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "flapd.sources.job_reader", "--link", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
            )
        send(self._link, orders)
        self._state = orders.state
        self.told: list[Told] = []
        self._heard = 0

    def ask_queue_pairs(self) -> None:
        send(self._link, LookAtQueuePairs())

    def until(self, wanted: Callable[[Told], _T | None], patience: float = PATIENCE_SECONDS) -> _T:
        """Listens until something is told of which `wanted` makes something, once each."""
        deadline = time.monotonic() + patience
        while True:
            while self._heard < len(self.told):
                self._heard += 1
                found = wanted(self.told[self._heard - 1])
                if found is not None:
                    return found
            assert time.monotonic() < deadline, f"never told; but {self.told[-5:]}"
            self.listen()

    def next(self, kind: type[_T]) -> _T:
        return self.until(lambda told: told if isinstance(told, kind) else None)

    def fault(self, patience: float = PATIENCE_SECONDS) -> Fault:
        """Of a log in the directory of this reader: other jobs may run here."""

        def wanted(told: Told) -> Fault | None:
            if not isinstance(told, FaultRead) or told.fault.source is None:
                return None
            return told.fault if self._state in told.fault.source.file else None

        return self.until(wanted, patience)

    def listen(self, seconds: float = 1.0) -> None:
        try:
            self.told += receive(self._link, told_decoder, seconds)
        except TimeoutError:
            return

    @property
    def pid(self) -> int:
        return self._process.pid

    def most_resident_mb(self) -> float:
        """The most it ever had."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    def close(self) -> None:
        self._link.close()
        self._process.wait(PATIENCE_SECONDS)


@contextmanager
def job_reader(orders: ReaderOrders) -> Iterator[RunningReader]:
    """Ends by itself once its agent has: closing the link is all that ends it."""
    reader = RunningReader(orders)
    try:
        yield reader
    finally:
        reader.close()
