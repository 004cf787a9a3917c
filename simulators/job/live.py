"""Live: the processes, the log and the dumps of one node of a run, each at its time."""

import heapq
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from flapd.model.times import SECOND_NS
from simulators.job.found import dumps_of, environment_of
from simulators.job.log import attempt_log, ranks_on
from simulators.job.record import Run
from simulators.job.words.speaker import Clock

ROOT = Path(__file__).parent.parent.parent
_END_SECONDS = 5.0
_AFTER_SECONDS = 0.001
"""Its last words come first."""
_INHERITED = ("PATH", "HOME", "TZ")


class _Action(NamedTuple):
    at: float
    number: int
    do: Callable[[], None]


class LiveNode:
    """Plays a run; second 0 of it is `origin_ns` (monotonic)."""

    def __init__(self, run: Run, node: int, directory: Path, origin_ns: int) -> None:
        self.log = directory / f"slurm-{run.spec.job}.out"
        self.dumps = directory / "dumps"
        self._run, self._node = run, node
        self._origin_ns = origin_ns
        self._clock = Clock(origin_ns + time.time_ns() - time.monotonic_ns())
        self._host = socket.gethostname().partition(".")[0]
        self._ranks: dict[int, subprocess.Popen[bytes]] = {}
        self._actions: list[_Action] = []
        self._numbers = count()
        self._stopping = threading.Event()
        self._player = threading.Thread(target=self._play)

    @property
    def pids(self) -> dict[int, int]:
        """Of the ranks that run now."""
        return {rank: process.pid for rank, process in self._ranks.items()}

    def start(self) -> None:
        self.dumps.mkdir(parents=True)
        for number, attempt in enumerate(self._run.attempts):
            self._at(attempt.begin, partial(self._begin, number))
        for at, rank, content in dumps_of(self._run, self._node, self._clock):
            self._at(at, partial(self._write_dump, rank, content))
        self._player.start()

    def end(self) -> None:
        """Nothing more happens; who waits for it waits no longer."""
        self._stopping.set()

    def stop(self) -> None:
        """Ends what runs, whatever it would have done."""
        self.end()
        self._player.join()
        for rank in list(self._ranks):
            self._end(rank, signal.SIGKILL)

    def wait(self) -> None:
        """Until all has happened."""
        self._player.join()

    def _at(self, at: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._actions, _Action(at, next(self._numbers), do))

    def _play(self) -> None:
        while self._actions:
            due_ns = self._origin_ns + round(self._actions[0].at * SECOND_NS)
            if self._stopping.wait(max(0, due_ns - time.monotonic_ns()) / SECOND_NS):
                return
            heapq.heappop(self._actions).do()

    def _begin(self, number: int) -> None:
        """Its lines have the pids that its processes got."""
        with self.log.open("ab") as log:
            self._ranks = {
                rank: self._started(rank, log.fileno()) for rank in ranks_on(self._run, self._node)
            }
        pids = self.pids

        def who(rank: int, _attempt: int) -> tuple[str, int]:
            return self._host, pids[rank]

        for line in attempt_log(self._run, self._node, self._clock, number, who):
            self._at(line.at, partial(self._say, line.rank, line.text))
        end = self._run.attempts[number].end
        ends = {} if end is None else end.ends
        for rank in pids.keys() & ends.keys():
            self._at(ends[rank] + _AFTER_SECONDS, partial(self._end, rank, signal.SIGABRT))

    def _started(self, rank: int, log: int) -> "subprocess.Popen[bytes]":
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        dumps = {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{self.dumps}/nccl_trace_rank_"}
        return subprocess.Popen(
            [sys.executable, "-m", "simulators.job.rank"],
            cwd=ROOT,
            env={**inherited, **environment_of(self._run, rank), **dumps},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )

    def _say(self, rank: int, text: str) -> None:
        process = self._ranks.get(rank)
        if process is not None and process.stdin is not None:
            process.stdin.write(text.encode())
            process.stdin.flush()
            return
        with self.log.open("ab") as log:
            log.write(text.encode())

    def _end(self, rank: int, number: signal.Signals) -> None:
        process = self._ranks.pop(rank, None)
        if process is not None:
            assert process.stdin is not None
            process.send_signal(number)
            process.stdin.close()
            process.wait(_END_SECONDS)

    def _write_dump(self, rank: int, content: bytes) -> None:
        (self.dumps / f"nccl_trace_rank_{rank}").write_bytes(content)


@contextmanager
def live_node(run: Run, node: int, directory: Path, origin_ns: int) -> Iterator[LiveNode]:
    live = LiveNode(run, node, directory, origin_ns)
    live.start()
    try:
        yield live
    finally:
        live.stop()
