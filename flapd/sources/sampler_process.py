"""The agent's side of its sampler: what it is told, what it tells, and what a dead one leaves."""

import socket
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import msgspec
import structlog

from flapd.model.observation import Observation, ReaderStuck
from flapd.model.times import SECOND_NS
from flapd.sources.child_process import END_WITHIN_SECONDS, ChildProcess
from flapd.sources.processes import kill, start_time
from flapd.sources.read_health import ReadHealth
from flapd.sources.sampler_link import (
    LeftBehind,
    Orders,
    ReadNow,
    SourcesHeard,
    Told,
    WatchClosely,
    receive,
)
from flapd.sources.starting import StartChild, start_own

_log = structlog.get_logger("flapd.sampler")


class SamplerHealth(msgspec.Struct):
    """What happened to the sampler since the agent started."""

    restarts: int = 0
    reads: ReadHealth = msgspec.field(default_factory=ReadHealth)
    sources: dict[str, dict[str, str]] = {}
    """By device: each of the kernel's sources, "on" or why it tells nothing."""


class SamplerProcess:
    """Runs the sampler for as long as the agent lives."""

    def __init__(
        self,
        orders: Orders,
        put: Callable[[list[Observation]], None],
        known_up: Callable[[], frozenset[str]] = frozenset,
        ended: Callable[[], None] = lambda: None,
        start_child: StartChild = start_own,
    ) -> None:
        """`known_up` tells, whenever a sampler starts, which ports were up at some time.

        `ended` is called after each sampler's end and before the next one's start: what it
        read last and could not tell is in the ring.
        """
        self._health = SamplerHealth()
        self._orders = orders
        self._put = put
        self._known_up = known_up
        self._ended = ended
        self._closely: frozenset[str] = frozenset()
        self._stuck: dict[str, ReaderStuck] = {}
        self._left_behind: list[LeftBehind] = []
        self._record = Path(orders.ring) / "sampler.json"
        self._pid = 0
        self._child = ChildProcess("sampler", "flapd.sources.sampler", self, start_child)

    @property
    def health(self) -> SamplerHealth:
        self._health.restarts = self._child.restarts
        return self._health

    def start(self) -> None:
        self._end_leftover()
        self._child.start()

    def use(self, orders: Orders) -> None:
        """Goes on with other orders, by a fresh sampler."""
        if orders != self._orders:
            self._orders = orders
            self._child.replace()

    def watch_closely(self, keys: frozenset[str]) -> None:
        """Has the state of these ports read on every fast sweep."""
        if keys != self._closely and self._child.send(WatchClosely(keys)):
            self._closely = keys

    def read_now(self, keys: Collection[str]) -> None:
        """Has these ports read at once; from any thread, without waiting.

        Where there is no sampler now the next one begins by reading all.
        """
        if keys:
            self._child.send(ReadNow(frozenset(keys)))

    def stop(self) -> None:
        """Ends the sampler; one that cannot die is left behind."""
        self._child.stop()

    # What a child process is for (child_process.Tasks).

    def begins(self, pid: int, /) -> list[Any]:
        self._pid = pid
        self._note(pid)
        return [self._orders_now(), WatchClosely(self._closely)]

    def hear(self, link: socket.socket, within_seconds: float) -> bool:
        told = receive(link, within_seconds)
        self._hear(told)
        return bool(told)

    def buried(self, pid: int, /, *, is_gone: bool) -> None:
        """Its hanging devices are left out by the next one until it is really gone."""
        if is_gone:
            now_ns = time.monotonic_ns()
            self._put([ReaderStuck(device, None, now_ns) for device in self._stuck])
        else:
            self._leave_behind(pid, tuple(self._stuck))
        self._stuck = {}
        if not self._child.is_stopping:
            self._ended()

    def _orders_now(self) -> Orders:
        return msgspec.structs.replace(
            self._orders, left_behind=self._still_there(), known_up=self._known_up()
        )

    def _hear(self, told: list[Told]) -> None:
        observations: list[Observation] = []
        for message in told:
            if isinstance(message, ReadHealth):
                self._note_reads(message)
                continue
            if isinstance(message, SourcesHeard):
                self._note_sources(message.by_device)
                continue
            if isinstance(message, ReaderStuck):
                self._reader_stuck(message)
            observations.append(message)
        if observations:
            self._put(observations)

    def _note_reads(self, since_told: ReadHealth) -> None:
        before = self._health.reads
        for device, factor in since_told.slowed.items():
            if factor != before.slowed.get(device, 1):
                _log.warning("device_slowed", device=device, intervals_times=factor)
        for device, rings in since_told.rings_missing.items():
            if rings > before.rings_missing.get(device, 0):
                _log.warning("rings_missing", device=device, rings=rings)
        self._health.reads.add(since_told)

    def _note_sources(self, by_device: dict[str, dict[str, str]]) -> None:
        """What told before and does so no more is logged; what never did is shown."""
        for device, sources in by_device.items():
            before = self._health.sources.get(device, {})
            for source, reason in sources.items():
                if before.get(source) == "on" != reason:
                    _log.warning("source_silent", device=device, source=source, reason=reason)
        self._health.sources = by_device

    def _reader_stuck(self, stuck: ReaderStuck) -> None:
        if stuck.since_ns is None:
            self._stuck.pop(stuck.device, None)
            _log.info("reader_came_back", device=stuck.device)
        else:
            self._stuck[stuck.device] = stuck
            waited_seconds = round((stuck.monotonic_ns - stuck.since_ns) / SECOND_NS, 1)
            _log.warning("reader_stuck", device=stuck.device, waited_seconds=waited_seconds)
        self._note(self._pid)

    def _leave_behind(self, pid: int, devices: tuple[str, ...]) -> None:
        _log.warning("sampler_left_behind", pid=pid, devices=devices)
        started = start_time(pid)
        if started is not None:
            self._left_behind.append(LeftBehind(pid, started, devices))

    def _still_there(self) -> tuple[LeftBehind, ...]:
        self._left_behind = [old for old in self._left_behind if start_time(old.pid) == old.started]
        return tuple(self._left_behind)

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
