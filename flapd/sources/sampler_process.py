"""The agent's side of its sampler: starts it, listens, starts it again when it ends."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import structlog

from flapd.model.observation import Observation, ReaderStuck
from flapd.model.times import SECOND_NS
from flapd.sources.processes import kill, start_time
from flapd.sources.read_health import ReadHealth
from flapd.sources.sampler_link import (
    LeftBehind,
    Orders,
    Told,
    WatchClosely,
    make_link,
    receive,
    send,
    send_if_room,
)

SHORTEST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
WELL_AFTER_SECONDS = 10.0
"""A sampler that lived this long is started again without a growing pause."""
SILENT_SECONDS = 5.0
"""It says every second that it is here; one that does not, for this long, hangs."""
STARTS_WITHIN_SECONDS = 30.0
LOOK_EVERY_SECONDS = 1.0
END_WITHIN_SECONDS = 0.5

_log = structlog.get_logger("flapd.sampler")


class SamplerHealth(msgspec.Struct):
    """What happened to the sampler since the agent started."""

    restarts: int = 0
    reads: ReadHealth = msgspec.field(default_factory=ReadHealth)


class SamplerProcess:
    """Runs the sampler for as long as the agent lives."""

    def __init__(
        self,
        orders: Orders,
        put: Callable[[list[Observation]], None],
        known_up: Callable[[], frozenset[str]] = frozenset,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """`known_up` tells, whenever a sampler starts, which ports were up at some time.

        `ended` is called after each sampler's end and before the next one's start: what it
        read last and could not tell is in the ring.
        """
        self.health = SamplerHealth()
        self._orders = orders
        self._put = put
        self._known_up = known_up
        self._ended = ended
        self._closely: frozenset[str] = frozenset()
        self._stuck: dict[str, ReaderStuck] = {}
        self._left_behind: list[LeftBehind] = []
        self._record = Path(orders.ring) / "sampler.json"
        self._stopping = threading.Event()
        self._replaced = False
        self._child: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        self._end_leftover()
        self._thread.start()

    def use(self, orders: Orders) -> None:
        """Goes on with other orders, by a fresh sampler."""
        if orders != self._orders:
            self._orders = orders
            self._replaced = True
            self._end_child()

    def watch_closely(self, keys: frozenset[str]) -> None:
        """Has the state of these ports read on every fast sweep."""
        link = self._link
        if keys != self._closely and link is not None:
            with suppress(OSError):  # no sampler now: there is a next one
                if send_if_room(link, WatchClosely(keys)):
                    self._closely = keys

    def stop(self) -> None:
        """Ends the sampler; one that cannot die is left behind."""
        self._stopping.set()
        self._end_child()

    def _run(self) -> None:
        pause_seconds = SHORTEST_PAUSE_SECONDS
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                self._live_once()
            except Exception:  # noqa: BLE001 - the one broad handler: a supervisor's
                if not self._stopping.is_set():
                    _log.exception("sampler_failed")
            if self._replaced or self._stopping.is_set():
                self._replaced = False
                continue
            self.health.restarts += 1
            if time.monotonic() - started > WELL_AFTER_SECONDS:
                pause_seconds = SHORTEST_PAUSE_SECONDS
            _log.warning("sampler_ended", pause_seconds=pause_seconds)
            self._stopping.wait(pause_seconds)
            pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)

    def _live_once(self) -> None:
        ours, theirs = make_link()
        with ours, theirs:
            child = subprocess.Popen(
                [sys.executable, "-m", "flapd.sources.sampler", "--link", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in a terminal is for the agent, which ends it
            )
            theirs.close()
            self._child, self._link = child, ours
            try:
                if not self._stopping.is_set():  # else it may have come too late to be ended
                    self._talk(ours, child)
            finally:
                self._link = None
                self._bury(child)
                if not self._stopping.is_set():
                    self._ended()

    def _talk(self, link: socket.socket, child: "subprocess.Popen[bytes]") -> None:
        """Until it ends, or either end of the link is closed."""
        self._note(child.pid)
        with suppress(ConnectionError):
            send(link, self._orders_now())
            send(link, WatchClosely(self._closely))
            self._listen(link, child)

    def _orders_now(self) -> Orders:
        return msgspec.structs.replace(
            self._orders, left_behind=self._still_there(), known_up=self._known_up()
        )

    def _listen(self, link: socket.socket, child: "subprocess.Popen[bytes]") -> None:
        """Until the sampler ends, is ended, or says nothing for too long."""
        silent_until = time.monotonic() + STARTS_WITHIN_SECONDS
        while time.monotonic() < silent_until:
            try:
                told = receive(link, LOOK_EVERY_SECONDS)
            except TimeoutError:
                if start_time(child.pid) is None:
                    return  # killed, while a thread of it hangs and keeps the link open
                continue
            if not told:
                return
            silent_until = time.monotonic() + SILENT_SECONDS
            self._hear(told)
        _log.error("sampler_hangs", silent_seconds=SILENT_SECONDS)

    def _hear(self, told: list[Told]) -> None:
        observations: list[Observation] = []
        for message in told:
            if isinstance(message, ReadHealth):
                self._note_reads(message)
                continue
            if isinstance(message, ReaderStuck):
                self._reader_stuck(message)
            observations.append(message)
        if observations:
            self._put(observations)

    def _note_reads(self, since_told: ReadHealth) -> None:
        before = self.health.reads
        for device, factor in since_told.slowed.items():
            if factor != before.slowed.get(device, 1):
                _log.warning("device_slowed", device=device, intervals_times=factor)
        for device, rings in since_told.rings_missing.items():
            if rings > before.rings_missing.get(device, 0):
                _log.warning("rings_missing", device=device, rings=rings)
        self.health.reads.add(since_told)

    def _reader_stuck(self, stuck: ReaderStuck) -> None:
        if stuck.since_ns is None:
            self._stuck.pop(stuck.device, None)
            _log.info("reader_came_back", device=stuck.device)
        else:
            self._stuck[stuck.device] = stuck
            waited_seconds = round((stuck.monotonic_ns - stuck.since_ns) / SECOND_NS, 1)
            _log.warning("reader_stuck", device=stuck.device, waited_seconds=waited_seconds)
        if self._child is not None:
            self._note(self._child.pid)

    def _bury(self, child: "subprocess.Popen[bytes]") -> None:
        """Its hanging devices are left out by the next one until it is really gone."""
        child.kill()
        try:
            child.wait(END_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self._leave_behind(child.pid, tuple(self._stuck))
        else:
            now_ns = time.monotonic_ns()
            self._put([ReaderStuck(device, None, now_ns) for device in self._stuck])
        self._stuck = {}

    def _leave_behind(self, pid: int, devices: tuple[str, ...]) -> None:
        _log.warning("sampler_left_behind", pid=pid, devices=devices)
        started = start_time(pid)
        if started is not None:
            self._left_behind.append(LeftBehind(pid, started, devices))

    def _still_there(self) -> tuple[LeftBehind, ...]:
        self._left_behind = [old for old in self._left_behind if start_time(old.pid) == old.started]
        return tuple(self._left_behind)

    def _end_child(self) -> None:
        """Its end of the link stays open for as long as it cannot die: ours is closed."""
        child, link = self._child, self._link
        if child is not None:
            child.kill()
        if link is not None:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        if self._stopping.is_set():
            self._thread.join(2 * END_WITHIN_SECONDS)

    def _note(self, pid: int) -> None:
        """Who reads, for an agent that comes after one that was killed; by rename, so whole."""
        note = LeftBehind(pid, start_time(pid) or "", tuple(self._stuck))
        draft = self._record.with_suffix(".draft")
        try:
            draft.write_bytes(msgspec.json.encode(note))
            draft.replace(self._record)
        except OSError as error:
            _log.warning("sampler_not_noted", path=str(self._record), error=str(error))

    def _end_leftover(self) -> None:
        """Ends the sampler of an agent that was killed: two must not write one ring."""
        try:
            old = msgspec.json.decode(self._record.read_bytes(), type=LeftBehind)
        except (OSError, msgspec.MsgspecError):
            return
        if start_time(old.pid) != old.started:
            return
        _log.warning("leftover_sampler", pid=old.pid)
        kill(old.pid)
        deadline = time.monotonic() + END_WITHIN_SECONDS
        while start_time(old.pid) == old.started:
            if time.monotonic() > deadline:
                self._leave_behind(old.pid, old.devices)
                return
            time.sleep(0.01)
