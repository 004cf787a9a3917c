"""IncidentDesk: keeps evidence as it comes, and tells what it makes known about incidents."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from flapd.core.cost.calibration import Measured, calibrate, in_force
from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.incident.closing import is_open
from flapd.core.incident.evidence import begin_ns
from flapd.core.incident.incidents import incident_of
from flapd.core.incident.measured import measured
from flapd.core.incident.memory import Item, Memory
from flapd.core.incident.scene import scenes_of
from flapd.core.incident.story import Story, longest_ns, stories_of
from flapd.core.incident.telling import Telling, Told, count
from flapd.core.incident.view import IncidentsView, IncidentTotals
from flapd.model.event import Event, Outage
from flapd.model.fault import Fault
from flapd.model.job import Job
from flapd.model.observation import (
    READ_CARRIER,
    READ_STATE,
    READ_WITNESS,
    ClockPair,
    DumpsRead,
    PortSeen,
    Sample,
    Tick,
)
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS

_READS = READ_WITNESS | READ_STATE | READ_CARRIER
_FINAL_NS = 15 * 60 * SECOND_NS
"""What was told of a time so long ago, and the longest story besides, is not told again."""
_LOOK_EVERY_NS = 5 * SECOND_NS
"""At what goes on, when nothing new is heard of it."""
_FORGET_EVERY_NS = 60 * SECOND_NS
_MOST_MEASURED = 64
_NOTHING: list[Event] = []


class IncidentsRecord(msgspec.Struct):
    """What the checkpoint holds of incidents."""

    boot: str = ""
    wall_offset_ns: int | None = None
    memory: Memory = msgspec.field(default_factory=Memory)
    told: dict[str, Told] = {}
    totals: IncidentTotals = msgspec.field(default_factory=IncidentTotals)
    affected: list[str] = []
    """Jobs of which something changed since the last tick, in order of their names."""
    looked_at_ns: int = 0
    final_after_ns: int = _FINAL_NS
    forgot_at_ns: int = 0
    measured: dict[str, Measured] = {}
    """By stall, also of what is forgotten otherwise."""


class IncidentDesk:
    """Hears outages, faults, stalls and jobs; on ticks it looks again at what they concern."""

    def __init__(
        self, node: str, job: JobSettings, cost: CostSettings, record: IncidentsRecord
    ) -> None:
        self.record = record
        self._node, self._job, self._cost = node, job, cost
        self._telling = Telling(
            record.told, incident_of, lambda incident: count(incident, node, record.totals)
        )
        self._retries = calibrate(record.measured.values())
        self._read_ns = record.memory.read_ns
        self.takes: dict[type, Callable[[Any], list[Event]]] = {
            Sample: self._sample,
            Tick: self._tick,
            ClockPair: self._clock_pair,
            PortSeen: self._port_seen,
            DumpsRead: self._dumps_read,
        }

    def hears(self, events: Sequence[Event]) -> list[Event]:
        for event in events:
            if isinstance(event, Outage | Fault | Stall | Job) and not self._is_too_old(event):
                self._affect(self.record.memory.take(event))
        return []

    def known_ids(self) -> Collection[str]:
        """Of all incidents that may be told again."""
        return self.record.told.keys()

    def view(self) -> IncidentsView:
        open_ones, totals = len(self._telling.open()), self.record.totals.copy()
        return IncidentsView(open_ones, totals, self._retries)

    def _affect(self, names: Iterable[str]) -> None:
        self.record.affected = sorted({*self.record.affected, *names})

    def _is_too_old(self, item: Item) -> bool:
        """What it belongs to is forgotten."""
        at_ns = _began_ns(item)
        return at_ns is not None and at_ns < self.record.forgot_at_ns - self._kept_for_ns

    @property
    def _kept_for_ns(self) -> int:
        """Of what is told finally the evidence is still needed for what came after it."""
        return 2 * self.record.final_after_ns

    def _sample(self, sample: Sample) -> list[Event]:
        if sample.reads & _READS:
            self._read_ns[sample.key] = sample.after_ns
        return _NOTHING

    def _clock_pair(self, pair: ClockPair) -> list[Event]:
        if pair.boot != self.record.boot:
            self.record.boot = pair.boot
            self.record.memory.begin_boot()
        self.record.wall_offset_ns = pair.unix_ns - pair.monotonic_ns
        return _NOTHING

    def _port_seen(self, seen: PortSeen) -> list[Event]:
        self.record.memory.ports[seen.port.key] = seen.port
        return _NOTHING

    def _dumps_read(self, read: DumpsRead) -> list[Event]:
        self.record.memory.standings[read.job or ""] = read.standings
        self._affect([read.job or ""])
        return _NOTHING

    def _tick(self, tick: Tick) -> list[Event]:
        record = self.record
        if record.wall_offset_ns is None:
            return _NOTHING
        now_ns = tick.monotonic_ns + record.wall_offset_ns
        record.memory.note_watched(record.wall_offset_ns)
        events = self._look(now_ns) if self._is_due(now_ns) else []
        if _is_past(record.forgot_at_ns, _FORGET_EVERY_NS, now_ns):
            self._forget(now_ns)
        return events

    def _is_due(self, now_ns: int) -> bool:
        record = self.record
        is_time = _is_past(record.looked_at_ns, _LOOK_EVERY_NS, now_ns)
        return bool(record.affected) or (is_time and bool(self._telling.open()))

    def _look(self, now_ns: int) -> list[Event]:
        record = self.record
        affected, record.affected, record.looked_at_ns = record.affected, [], now_ns
        names = {*affected, *(one.job or "" for one in self._telling.open())}
        stories = self._stories(names, now_ns)
        self._measure(stories)
        final_ns, pauses = now_ns - record.final_after_ns, record.memory.pauses()
        return [*self._telling.tell(stories, names, affected, pauses, final_ns)]

    def _stories(self, names: set[str], now_ns: int) -> list[Story]:
        record = self.record
        offset_ns = record.wall_offset_ns or 0
        known = record.memory.evidence(self._node, now_ns, offset_ns, self._job, self._cost)
        evidence = replace(known, retries=self._retries)
        scenes = [one for one in scenes_of(evidence, names - {""}) if (one.job or "") in names]
        longest = max((longest_ns(scene) for scene in scenes), default=0)
        record.final_after_ns = max(record.final_after_ns, _FINAL_NS + longest)
        return [story for scene in scenes for story in stories_of(scene)]

    def _measure(self, stories: Iterable[Story]) -> None:
        """Where the timers turn out to be others, all is told anew that stands on them."""
        record = self.record
        for story in stories:
            for stall in story.stalls:
                record.measured.pop(stall.id, None)
            found = None if is_open(story) else measured(story)
            if found is not None:
                record.measured[found.stall] = found
        newest = sorted(record.measured.values(), key=lambda one: (one.at_unix_ns, one.stall))
        record.measured = {one.stall: one for one in newest[-_MOST_MEASURED:]}
        before, self._retries = self._retries, calibrate(record.measured.values())
        if in_force(self._retries) != in_force(before):
            self._affect(record.memory.names())

    def _forget(self, now_ns: int) -> None:
        """Stories as a whole: what is left must tell the same as before."""
        record = self.record
        record.forgot_at_ns = now_ns
        cutoff_ns = now_ns - self._kept_for_ns
        stories = self._stories(record.memory.names(), now_ns)
        dropped = {name for one in stories if one.begin_ns < cutoff_ns for name in one.members}
        kept = {name for one in stories if one.begin_ns >= cutoff_ns for name in one.members}
        record.memory.forget(cutoff_ns, kept, dropped - kept)
        record.memory.bound()
        self._telling.forget(cutoff_ns)


def _is_past(before_ns: int, every_ns: int, now_ns: int) -> bool:
    """Wall clocks are set back at times."""
    return not before_ns <= now_ns < before_ns + every_ns


def _began_ns(item: Item) -> int | None:
    """Unix time; None: of jobs, and of what has no time, it does not matter."""
    if isinstance(item, Outage):
        return begin_ns(item)
    if isinstance(item, Stall):
        return item.begin_unix_ns
    return item.time_ns if isinstance(item, Fault) else None
