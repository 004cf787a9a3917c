"""The agent's side of its sampler: starts it, listens, starts it again when it ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from flapd.model.observation import Observation, ReaderStuck
from flapd.model.times import SECOND_NS
from flapd.sources.files import read_text
from flapd.sources.sampler_link import Orders, make_link, receive, send_orders

SHORTEST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
WELL_AFTER_SECONDS = 10.0
"""A sampler that lived this long is started again without a growing pause."""
END_WITHIN_SECONDS = 0.5

_log = structlog.get_logger("flapd.sampler")


class SamplerHealth(msgspec.Struct):
    """What happened to the sampler since the agent started."""

    restarts: int = 0
    running: bool = False


class SamplerProcess:
    """Runs the sampler for as long as the agent lives."""

    def __init__(self, orders: Orders, put: Callable[[Observation], None]) -> None:
        self.health = SamplerHealth()
        self._orders = orders
        self._put = put
        self._stopping = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._replaced = False
        self._pid_file = Path(orders.ring) / "sampler.pid"
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        end_leftover(self._pid_file)
        self._thread.start()

    def use(self, orders: Orders) -> None:
        """Goes on with other orders, by a fresh sampler."""
        if orders != self._orders:
            self._orders = orders
            self._replaced = True
            if self._child is not None:
                _end(self._child)

    def stop(self) -> None:
        """Ends the sampler; one that cannot die is left behind."""
        self._stopping.set()
        if self._child is not None:
            _end(self._child)

    def _run(self) -> None:
        pause_seconds = SHORTEST_PAUSE_SECONDS
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                self._live_once()
            except Exception:  # noqa: BLE001 - the one broad handler: a supervisor's
                _log.exception("sampler_failed")
            self.health.running = False
            if self._stopping.is_set():
                return
            if self._replaced:
                self._replaced = False
                continue
            self.health.restarts += 1
            if time.monotonic() - started > WELL_AFTER_SECONDS:
                pause_seconds = SHORTEST_PAUSE_SECONDS
            _log.warning("sampler_ended", pause_seconds=pause_seconds)
            self._stopping.wait(pause_seconds)
            pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)

    def _write_pid(self, pid: int) -> None:
        """By rename, so that it is never found half written."""
        draft = self._pid_file.with_suffix(".draft")
        draft.write_text(f"{pid} {_start_time(pid)}")
        draft.replace(self._pid_file)

    def _live_once(self) -> None:
        ours, theirs = make_link()
        with ours, theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "flapd.sources.sampler", "--link", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
            theirs.close()
            self._write_pid(self._child.pid)
            try:
                send_orders(ours, self._orders)
                self.health.running = True
                while (observation := receive(ours)) is not None:
                    self._put(observation)
                    if isinstance(observation, ReaderStuck):
                        _log_reader(observation)
            except ConnectionError:
                pass  # it ended while something was on its way
            finally:
                _end(self._child)


def end_leftover(pid_file: Path) -> None:
    """Ends a sampler of an agent that was killed: two must not write one ring."""
    pid, _, started = (read_text(pid_file) or "").partition(" ")
    if pid.isdigit() and started and _start_time(int(pid)) == started:
        _log.warning("leftover_sampler", pid=int(pid))
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + END_WITHIN_SECONDS
        while _start_time(int(pid)) == started and time.monotonic() < deadline:
            time.sleep(0.01)


def _log_reader(stuck: ReaderStuck) -> None:
    if stuck.since_ns is None:
        _log.info("reader_came_back", device=stuck.device)
    else:
        waited_seconds = round((stuck.monotonic_ns - stuck.since_ns) / SECOND_NS, 1)
        _log.warning("reader_stuck", device=stuck.device, waited_seconds=waited_seconds)


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    try:
        child.wait(END_WITHIN_SECONDS)
    except subprocess.TimeoutExpired:
        _log.warning("sampler_left_behind", pid=child.pid)


def _start_time(pid: int) -> str | None:
    """Start of a process in ticks since boot, which with its number names it (proc(5)).

    The name in the second field may hold anything, hence from the last bracket on.
    """
    stat = read_text(Path(f"/proc/{pid}/stat"))
    fields = stat.rpartition(")")[2].split() if stat else []
    state_and_start = 20
    return fields[19] if len(fields) >= state_and_start and fields[0] not in "ZX" else None
