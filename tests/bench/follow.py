"""Follow: the chatty INFO logs of eight ranks, followed by the real job reader as they grow."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from flapd.model.observation import FaultRead
from flapd.sources.job_reader_link import ReaderHealth, ReaderOrders
from flapd.sources.settings import JobsSettings, LogsSettings
from tests.bench.figure import Figure, Scale
from tests.bench.logs import chatty_log
from tests.bench.machine import cpu_seconds, memory_directory
from tests.sources.follow.lines import timeout
from tests.sources.running_reader import RunningReader, job_reader

RANKS = 8
BYTES_PER_SECOND = 50_000_000
SECONDS_OF_SCALE = 2 / 3
"""20 s of the 30 s that others are watched."""
_PIECE_BYTES = 250_000
_PIECES_A_FAULT = 20
_GIGABYTE = 1_000_000_000
_PATIENCE_SECONDS = 60.0


def follow(scale: Scale) -> list[Figure]:
    with memory_directory() as directory, ExitStack() as stack:
        orders = ReaderOrders(
            "node1",
            "/sys",
            "/proc",
            str(directory),
            logs=LogsSettings(paths=(f"{directory}/*.log",), discover=False, from_start=True),
            jobs=JobsSettings(discover=False),
        )
        reader = stack.enter_context(job_reader(orders))
        reader.next(ReaderHealth)
        before = cpu_seconds(reader.pid)
        written, said = _write(directory, reader, scale.seconds * SECONDS_OF_SCALE)
        ended = time.monotonic()
        found = _found(reader, said)
        late = time.monotonic() - ended
        used = cpu_seconds(reader.pid) - before
    return [
        Figure(
            what="faults missed in logs that are followed while 8 ranks write 50 MB/s",
            unit="",
            value=said - found,
            budget=0,
            note=f"{said} in {written / _GIGABYTE:.2f} GB, the last {late:.1f} s after its line",
        ),
        Figure(
            what="following them",
            unit="s of CPU a GB",
            value=used / written * _GIGABYTE,
            budget=5,
            floor="the parser alone: see logs",
        ),
    ]


def _write(directory: Path, reader: RunningReader, seconds: float) -> tuple[int, int]:
    """Bytes, and faults among them; what the reader tells is taken meanwhile."""
    pieces = [chatty_log(_PIECE_BYTES, seed=rank) for rank in range(RANKS)]
    written = said = 0
    with ExitStack() as stack:
        logs = [
            stack.enter_context((directory / f"rank{rank}.log").open("ab", buffering=0))
            for rank in range(RANKS)
        ]
        began = time.monotonic()
        for number in _numbers(began, seconds):
            rank = number % RANKS
            log, piece = logs[rank], pieces[rank]
            if number % _PIECES_A_FAULT == 0:
                piece, said = piece + timeout(number).encode(), said + 1
            log.write(piece)
            written += len(piece)
            due = began + written / BYTES_PER_SECOND
            reader.listen(max(0.001, due - time.monotonic()))
    return written, said


def _numbers(began: float, seconds: float) -> Iterator[int]:
    number = 0
    while time.monotonic() < began + seconds:
        yield number
        number += 1


def _found(reader: RunningReader, said: int) -> int:
    """Different ones, told by now or soon."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        found = {
            told.fault.seq
            for told in reader.told
            if isinstance(told, FaultRead) and told.fault.kind == "watchdog_timeout"
        }
        if len(found) >= said or time.monotonic() > deadline:
            return len(found)
        reader.listen()
