"""JobDesk: what jobs, their logs and dumps, and the traffic of their ports tell."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from flapd.core.cost.settings import JobSettings
from flapd.core.job import queue_pairs
from flapd.core.job.counters import CounterBook, Rise, faults_of, rises
from flapd.core.job.evidence import Evidence, EvidenceRecord
from flapd.core.job.jobs import Jobs
from flapd.core.job.kernel import fault_of, is_about, is_trouble
from flapd.core.job.ports import PortBook, Ports
from flapd.core.job.stalls import Stalls, StallsRecord
from flapd.core.job.told import JobKnown, Seen
from flapd.core.job.view import JobsView, JobTotals
from flapd.model.event import Event, Outage
from flapd.model.fault import Fault
from flapd.model.finding import Member, Network, Note, PlannedPause, Setting
from flapd.model.job import Job, PortUse
from flapd.model.observation import (
    ClockPair,
    DumpsRead,
    FaultRead,
    JobSeen,
    JobsPresent,
    KernelHint,
    Noted,
    PortSeen,
    Sample,
    Tick,
)
from flapd.model.port import Port
from flapd.model.times import SECOND_NS

_NEWS_NS = 60 * SECOND_NS
"""What a job said longer ago than that it would do, it has done."""


class JobsRecord(msgspec.Struct):
    """What the checkpoint holds of jobs."""

    boot: str = ""
    wall_offset_ns: int = 0
    ports: dict[str, PortBook] = {}
    jobs: dict[str, JobKnown] = {}
    """By the scheduler's id; of those that have the same one, the latest."""
    evidence: EvidenceRecord = msgspec.field(default_factory=EvidenceRecord)
    stalls: StallsRecord = msgspec.field(default_factory=StallsRecord)
    blind_to: tuple[str, ...] = ()
    is_stale: bool = False
    """Something that is told of a job has changed, or may have."""
    totals: JobTotals = msgspec.field(default_factory=JobTotals)
    lost_revisions: dict[str, int] = {}
    """By id, of jobs that were told and are not known any more."""


class JobDesk:
    """Takes what concerns jobs, hears outages; tells jobs, faults and stalls."""

    def __init__(self, node: str, settings: JobSettings, record: JobsRecord) -> None:
        self.record = record
        self._node, self._settings = node, settings
        self._ports = Ports(record.ports)
        self._jobs = Jobs(node, settings, record.jobs, record.lost_revisions)
        self._evidence = Evidence(node, record.evidence, record.totals)
        self._stalls = Stalls(node, record.stalls, record.totals)
        self.takes: dict[type, Callable[[Any], list[Event]]] = {
            Sample: self._sample,
            Tick: self._tick,
            ClockPair: self._clock_pair,
            PortSeen: self._port_seen,
            JobSeen: self._job_seen,
            JobsPresent: self._jobs_present,
            FaultRead: self._fault_read,
            KernelHint: self._kernel_hint,
            Noted: self._noted,
            DumpsRead: self._dumps_read,
        }

    def hears(self, events: Sequence[Event]) -> list[Event]:
        """Links that went down may be why traffic stands still."""
        offset_ns = self.record.wall_offset_ns
        return [
            stall
            for event in events
            if isinstance(event, Outage)
            for stall in self._stalls.hear(event, self._ports.carrying(event.key), offset_ns)
        ]

    def known_ids(self) -> set[str]:
        """Of all jobs and of the stalls that go on."""
        told = {known.told.id for known in self.record.jobs.values() if known.told is not None}
        return told | {stall.id for stall in self._stalls.open(self.record.wall_offset_ns)}

    def count_on_from(self, jobs: Iterable[Job]) -> None:
        """These were told by an engine that is lost: their next revision is above those."""
        self.record.lost_revisions |= {job.id: job.revision for job in jobs}

    def view(self) -> JobsView:
        running = (self.record.jobs[name].told for name in self._jobs.running())
        return JobsView(
            running=tuple(job for job in running if job is not None),
            stalls=tuple(self._stalls.open(self.record.wall_offset_ns)),
            blind_to=self.record.blind_to,
            totals=self.record.totals.copy(),
        )

    def _sample(self, sample: Sample) -> list[Event]:
        port = self.record.ports.get(sample.key)
        if port is None or not port.take(sample):
            return []
        found = rises(port.counters, port.port, sample)
        if found:
            self._take_rises(found, port, sample.after_ns)
        if not self._stalls.is_followed(sample.key):
            return []
        return [*self._stalls.take(port, sample, self.record.wall_offset_ns)]

    def _take_rises(self, found: Sequence[Rise], port: PortBook, now_ns: int) -> None:
        offset_ns = self.record.wall_offset_ns
        told = faults_of(found, self._node, self.record.boot, port.port, now_ns, offset_ns)
        for fault in told:
            self._evidence.take(fault, now_ns + offset_ns)

    def _tick(self, tick: Tick) -> list[Event]:
        """What was read since the last one is judged and told together."""
        offset_ns = self.record.wall_offset_ns
        now_unix_ns = tick.monotonic_ns + offset_ns
        if self._jobs.forget(now_unix_ns):
            self._evidence.look_again()
        self._follow()
        stalls = self._stalls.look_around(self.record.ports, tick.monotonic_ns, offset_ns)
        self.record.is_stale |= any(map(self._is_seen_anew, self._running()))
        faults = self._evidence.tell(now_unix_ns, self._job_of)
        self._take_timeouts(faults)
        return [*self._changed_jobs(), *faults, *stalls]

    def _clock_pair(self, pair: ClockPair) -> list[Event]:
        record, events = self.record, list[Event]()
        if pair.boot != record.boot:
            for name in self._jobs.end_all():
                events += self._stalls.end(name, None, record.wall_offset_ns)
            for port in record.ports.values():
                port.before_ns, port.counters = 0, CounterBook()
            record.boot = pair.boot
            self._look_again()
        record.wall_offset_ns = pair.unix_ns - pair.monotonic_ns
        return [*events, *self._changed_jobs()]

    def _port_seen(self, seen: PortSeen) -> list[Event]:
        self._ports.seen(seen.port)
        self._look_again()
        return []

    def _job_seen(self, seen: JobSeen) -> list[Event]:
        now_unix_ns = seen.monotonic_ns + self.record.wall_offset_ns
        before = self._jobs.queue_pairs_in_error(seen.found.job)
        self._jobs.seen(seen.found, now_unix_ns)
        for fault in queue_pairs.faults_of(
            before, seen.found, self._ports.port, self._node, now_unix_ns
        ):
            self._evidence.take(fault, now_unix_ns)
        self._look_again()
        self._follow()
        return [*self._changed_jobs()]

    def _jobs_present(self, present: JobsPresent) -> list[Event]:
        record, events = self.record, list[Event]()
        now_unix_ns = present.monotonic_ns + record.wall_offset_ns
        record.blind_to = present.blind_to
        for name in self._jobs.present(present.jobs, now_unix_ns):
            events += self._stalls.end(name, present.monotonic_ns, record.wall_offset_ns)
            self._look_again()
        return [*events, *self._changed_jobs()]

    def _fault_read(self, read: FaultRead) -> list[Event]:
        self._evidence.take(read.fault, read.monotonic_ns + self.record.wall_offset_ns)
        return []

    def _kernel_hint(self, hint: KernelHint) -> list[Event]:
        """Of a card with several ports one tells for all."""
        port = self._about(hint) if is_trouble(hint) else None
        if port is not None:
            offset_ns = self.record.wall_offset_ns
            fault = fault_of(hint, self._node, self.record.boot, port, offset_ns)
            self._evidence.take(fault, hint.received_ns + offset_ns)
        return []

    def _about(self, hint: KernelHint) -> Port | None:
        ports = (book.port for book in self.record.ports.values())
        return next((port for port in ports if is_about(hint, port)), None)

    def _noted(self, noted: Noted) -> list[Event]:
        now_unix_ns = noted.monotonic_ns + self.record.wall_offset_ns
        job = noted.job or self._job_of_note(noted.note, now_unix_ns)
        if job is None:
            return []
        if isinstance(noted.note, PlannedPause):
            return [*self._announced(job, noted.note, now_unix_ns)]
        self._jobs.take_note(job, noted.note)
        self.record.is_stale = True
        return []

    def _dumps_read(self, read: DumpsRead) -> list[Event]:
        now_unix_ns = read.monotonic_ns + self.record.wall_offset_ns
        job = read.job or self._jobs.only_one(now_unix_ns)
        known = None if job is None else self._jobs.known(job)
        if known is not None:
            known.dump_timeouts_seconds = read.timeouts_seconds
            self.record.is_stale = True
        return []

    def _announced(self, job: str, pause: PlannedPause, now_unix_ns: int) -> Sequence[Event]:
        offset_ns = self.record.wall_offset_ns
        said_ns = now_unix_ns if pause.time_ns is None else min(pause.time_ns, now_unix_ns)
        if now_unix_ns - said_ns > _NEWS_NS:
            return []
        return self._stalls.announce(job, pause.what, said_ns - offset_ns, offset_ns)

    def _take_timeouts(self, faults: Sequence[Fault]) -> None:
        """A watchdog's message says which timeout its group has."""
        for fault in faults:
            known = None if fault.job is None else self._jobs.known(fault.job)
            is_telling = fault.kind == "watchdog_timeout" and fault.timeout_seconds is not None
            if known is not None and is_telling and fault.timeout_seconds is not None:
                self.record.is_stale |= known.take_timeout(fault.timeout_seconds)

    def _changed_jobs(self) -> list[Event]:
        if not self.record.is_stale:
            return []
        self.record.is_stale = False
        changed = list(self._jobs.changed(self._seen_of))
        if changed:
            self._evidence.look_again()
        return [*changed]

    def _look_again(self) -> None:
        self.record.is_stale = True
        self._evidence.look_again()

    def _follow(self) -> None:
        """Looks at the traffic of each job that runs, on the ports that are its own."""
        running = self._running()
        told = {known.found.job: self._told_ports(known) for known in running}
        rates = self._ports.rates()
        taken = {key for ports in told.values() for key in ports}
        free = {key: rate for key, rate in rates.items() if key not in taken}
        for known in running:
            own = told[known.found.job]
            self._stalls.follow(
                known.found.job,
                {key: rates[key] for key in own if key in rates} if own else free,
                training=known.kind(self._settings) != "inference",
                since_ns=known.since_unix_ns - self.record.wall_offset_ns,
            )

    def _running(self) -> list[JobKnown]:
        return [self.record.jobs[name] for name in self._jobs.running()]

    def _is_seen_anew(self, known: JobKnown) -> bool:
        """Its traffic tells something of it that was not told yet."""
        return known.told is None or _seen(known.told) != self._seen_of(known)

    def _seen_of(self, known: JobKnown) -> Seen:
        """The ports that something says it uses, else those with traffic while it runs."""
        if known.until_unix_ns is not None:
            return Seen() if known.told is None else _seen(known.told)
        job = known.found.job
        carriers: dict[str, PortUse] = dict.fromkeys(self._stalls.carriers(job), "traffic")
        sight = self._stalls.sight(job)
        return Seen(
            self._told_ports(known) or carriers,
            sight.since_unix_ns,
            sight.shortest_seconds,
            self._stalls.traffic_since_unix_ns(job),
            self._stalls.unseen_unix_ns(job),
        )

    def _told_ports(self, known: JobKnown) -> dict[str, PortUse]:
        logged: dict[str, PortUse] = dict.fromkeys(self._ports.keys_of(known.hcas), "log")
        return logged | known.found.ports

    def _job_of(self, fault: Fault) -> str | None:
        """By the file it was in, its port or its process; else the only job that ran then."""
        if fault.job is not None:
            return fault.job
        if fault.kind in ("counter", "kernel"):
            return self._job_on(self._ports.named(fault.hca, fault.port), fault.time_ns)
        job = self._jobs.of_process(fault.host, fault.pid)
        if job is not None or fault.time_ns is None:
            return job
        return self._jobs.only_one(fault.time_ns)

    def _job_on(self, keys: Sequence[str], at_unix_ns: int | None) -> str | None:
        """The job that used one of these ports then, if no other did."""
        told = ((name, self.record.jobs[name].told) for name in self._jobs.at(at_unix_ns))
        using = [
            name for name, job in told if job is not None and not job.ports.keys().isdisjoint(keys)
        ]
        return using[0] if len(using) == 1 else None

    def _job_of_note(self, note: Note, now_unix_ns: int) -> str | None:
        if isinstance(note, Setting | Member | Network):
            job = self._jobs.of_process(note.host, note.pid)
            if job is not None:
                return job
        return self._jobs.only_one(now_unix_ns)


def _seen(job: Job) -> Seen:
    return Seen(
        job.ports,
        job.stalls_seen_since_unix_ns,
        job.shortest_stall_seconds,
        job.traffic_since_unix_ns,
        job.traffic_unseen_unix_ns,
    )
