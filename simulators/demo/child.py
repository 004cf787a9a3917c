"""Child: processes and a place that end with the demo, in whatever way that ends."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simulators.errors import SimulatorError

ROOT = Path(__file__).parent.parent.parent


@contextmanager
def child(command: list[str], **streams: Any) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        start_new_session=True,
        preexec_fn=_end_with_parent,  # noqa: PLW1509 - the demo has one thread
        **streams,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def ready_child(
    command: list[str], log_file: Path, what: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """Once it said that it is ready; it ends with its standard input as well."""
    with log_file.open("w+b") as log:
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
        with child(command, **streams) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            if not process.stdout.readline().startswith(b"ready "):
                log.seek(0)
                raise SimulatorError(f"there is no {what}: {log.read().decode()}")
            yield process
            process.stdin.close()


def _end_with_parent() -> None:
    """prctl(PR_SET_PDEATHSIG, SIGTERM): the kernel ends us when the demo is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


@contextmanager
def scratch() -> Iterator[Path]:
    """In memory where there is such a place, else in the usual one."""
    memory = Path("/dev/shm")
    base = memory if os.access(memory, os.W_OK) else None
    directory = tempfile.mkdtemp(prefix="flapd-demo-", dir=base)
    try:
        yield Path(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def free_port(*wanted: int) -> int:
    """The first of these that is free; 0 is any."""
    for port in wanted:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(trial.getsockname()[1])
    raise SimulatorError("no TCP port is free on 127.0.0.1")
