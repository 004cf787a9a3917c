"""Stalls: the traffic of every job that runs here, held against its own rhythm."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec
from msgspec.structs import replace

from flapd.core.job.counters import sees_retries
from flapd.core.job.ports import PortBook
from flapd.core.job.stall.classify import Surroundings
from flapd.core.job.stall.record import WatchRecord
from flapd.core.job.stall.watch import StallWatch
from flapd.core.job.view import JobTotals
from flapd.model.event import Outage
from flapd.model.observation import Sample
from flapd.model.stall import Slowdown, Stall
from flapd.model.times import SECOND_NS, Edge

ANNOUNCED_NS = 10 * SECOND_NS
"""A job that still moves data so long after it said that it would pause has paused by then."""

UNREAD_NS = 5 * SECOND_NS
"""Ports that were not read for so long may have stood still or not."""
_MOST_UNSEEN = 16
_MARGIN = 1.2
_LEAST_SHARE = 0.5


class Sight(msgspec.Struct, frozen=True):
    """Whether a stall would be seen."""

    since_unix_ns: int | None = None
    """None: it would not, the job's rhythm or its traffic is not known."""
    shortest_seconds: float | None = None
    """Of stalls that would; as it was first found, or about that."""


class Followed(msgspec.Struct):
    """What is kept of the traffic of a job that runs."""

    since_ns: int
    """When it began, monotonic."""
    training: bool
    rates: dict[str, float | None]
    """Of the ports looked at, in bytes a second."""
    watch: WatchRecord
    announced_ns: int = 0
    """When it last said that it would pause."""
    sight: Sight = Sight()
    unseen_unix_ns: tuple[tuple[int, int], ...] = ()
    """From when to when nothing of its traffic was seen, the newest last."""
    traffic_since_unix_ns: int | None = None
    """Its first traffic, as the clock stood when that was seen."""


class LastDown(msgspec.Struct):
    """Of the last outage of a port, as far as it was told."""

    outage: str
    count: int
    up: Edge | None


class StallsRecord(msgspec.Struct):
    jobs: dict[str, Followed] = {}
    downs: dict[str, LastDown] = {}
    """By port key."""


class Stalls:
    """Follows jobs; its stalls are those of the watches, with wall time and counted."""

    def __init__(self, node: str, record: StallsRecord, totals: JobTotals) -> None:
        self._node, self._record, self._totals = node, record, totals
        self._watches = {job: self._watch(job, one) for job, one in record.jobs.items()}
        self._by_port: dict[str, list[StallWatch]] = {}
        self._index()

    def follow(
        self, job: str, rates: Mapping[str, float | None], *, training: bool, since_ns: int
    ) -> None:
        """Looks at these ports for this job from now on, and goes on with those it knows."""
        known = self._record.jobs.get(job)
        if known is not None and known.rates == rates and known.training == training:
            return
        if known is None:
            known = Followed(since_ns, training, {}, WatchRecord())
            self._record.jobs[job] = known
        known.rates, known.training = dict(rates), training
        self._watches[job] = self._watch(job, known)
        self._index()

    def carriers(self, job: str) -> list[str]:
        """Ports of those looked at that had traffic while it runs."""
        watch = self._watches.get(job)
        return [] if watch is None else watch.carriers

    def sight(self, job: str) -> Sight:
        known = self._record.jobs.get(job)
        return Sight() if known is None else known.sight

    def unseen_unix_ns(self, job: str) -> tuple[tuple[int, int], ...]:
        """Since when and until when what its traffic did is not known."""
        known = self._record.jobs.get(job)
        return () if known is None else known.unseen_unix_ns

    def traffic_since_unix_ns(self, job: str) -> int | None:
        """Its first traffic; None: there was none yet, or some before it was looked at."""
        known = self._record.jobs.get(job)
        return None if known is None else known.traffic_since_unix_ns

    def is_followed(self, key: str) -> bool:
        return key in self._by_port

    def take(self, port: PortBook, sample: Sample, wall_offset_ns: int) -> list[Stall]:
        """A sample of a port, that jobs may use."""
        sent_bytes = port.sent_bytes(sample)
        if sent_bytes is None:
            return []
        found: list[Stall | Slowdown] = []
        for watch in self._by_port[sample.key]:
            found += watch.sample(sample.key, sample.after_ns, sent_bytes)
        return self._told(found, wall_offset_ns) if found else []

    def hear(self, outage: Outage, key: str, wall_offset_ns: int) -> list[Stall]:
        """A link of this port went down: perhaps once more, in an outage that is known."""
        down = self._down_of(outage)
        if down is None or outage.cause == "boot":
            return []
        watches = self._by_port.get(key, ())
        found = [stall for watch in watches for stall in watch.link_down(key, *down)]
        return self._told(found, wall_offset_ns)

    def announce(
        self,
        job: str,
        what: Literal["checkpoint", "evaluation"],
        at_ns: int,
        wall_offset_ns: int,
    ) -> list[Stall]:
        """The job says that it pauses, or has just done so."""
        known, watch = self._record.jobs.get(job), self._watches.get(job)
        if known is None or watch is None:
            return []
        known.announced_ns = at_ns
        around = replace(watch.record.surroundings, planned=what)
        return self._told(watch.around(around), wall_offset_ns)

    def look_around(
        self, ports: Mapping[str, PortBook], now_ns: int, wall_offset_ns: int
    ) -> list[Stall]:
        """What else is seen of the node by now may change why traffic stands still."""
        told = []
        for job, watch in self._watches.items():
            known = self._record.jobs[job]
            known.sight = _sight(watch, known.sight, now_ns, wall_offset_ns)
            known.unseen_unix_ns = _unseen(watch, known.unseen_unix_ns, wall_offset_ns)
            if known.traffic_since_unix_ns is None and watch.record.first_ns is not None:
                known.traffic_since_unix_ns = watch.record.first_ns + wall_offset_ns
            around = Surroundings(
                processes=True,
                retransmitting=_retransmitting(watch, ports),
                planned=self._planned(job, watch),
            )
            if around != watch.record.surroundings:
                told += self._told(watch.around(around), wall_offset_ns)
        return told

    def end(self, job: str, now_ns: int | None, wall_offset_ns: int) -> list[Stall]:
        """The job is over; `now_ns` None: since nobody knows when, but not before its traffic."""
        watch = self._watches.pop(job, None)
        if watch is None:
            return []
        del self._record.jobs[job]
        self._index()
        return self._told(watch.end(watch.newest_ns if now_ns is None else now_ns), wall_offset_ns)

    def open(self, wall_offset_ns: int) -> Iterator[Stall]:
        """Those that go on."""
        for watch in self._watches.values():
            if watch.record.open is not None:
                yield _placed(watch.record.open, wall_offset_ns)

    def _watch(self, job: str, known: Followed) -> StallWatch:
        return StallWatch(
            self._node,
            job,
            known.rates,
            training=known.training,
            since_ns=known.since_ns,
            record=known.watch,
        )

    def _index(self) -> None:
        self._by_port = {}
        for watch in self._watches.values():
            for port in watch.record.ports:
                self._by_port.setdefault(port, []).append(watch)

    def _down_of(self, outage: Outage) -> tuple[int, int] | None:
        """Between when the port went down, if this revision tells of a down that none before did.

        Where a burst goes on, it was up until the last up, and down when this was told.
        """
        last = self._record.downs.get(outage.key)
        self._record.downs[outage.key] = LastDown(outage.id, outage.count, outage.up)
        if last is None or last.outage != outage.id:
            return outage.down.earliest_ns, outage.down.latest_ns
        if outage.count <= last.count:
            return None
        earliest = outage.down if last.up is None else last.up
        return earliest.earliest_ns, outage.recorded_ns

    def _planned(self, job: str, watch: StallWatch) -> Literal["checkpoint", "evaluation"] | None:
        moved_ns = watch.record.silent_since_ns or 0
        is_past = moved_ns > self._record.jobs[job].announced_ns + ANNOUNCED_NS
        return None if is_past else watch.record.surroundings.planned

    def _told(self, found: Iterable[Stall | Slowdown], wall_offset_ns: int) -> list[Stall]:
        told = [_placed(one, wall_offset_ns) for one in found if isinstance(one, Stall)]
        for stall in told:
            if stall.end_ns is not None:
                self._totals.stalls[stall.stall_class] += 1
                self._totals.stall_ns[stall.stall_class] += stall.end_ns - stall.begin_ns
        return told


def _sight(watch: StallWatch, before: Sight, now_ns: int, wall_offset_ns: int) -> Sight:
    """Told again only where the rhythm is another: each step moves it a little."""
    rhythm = watch.record.rhythm
    if not rhythm.is_known or now_ns - watch.newest_ns > UNREAD_NS:
        return Sight()
    shortest = rhythm.stall_after_ns / SECOND_NS
    known = before.shortest_seconds
    if known is None or not _LEAST_SHARE * known <= shortest <= known:
        known = float(math.ceil(_MARGIN * shortest))
    since_ns = now_ns + wall_offset_ns if before.since_unix_ns is None else before.since_unix_ns
    return Sight(since_ns, known)


def _unseen(
    watch: StallWatch, before: tuple[tuple[int, int], ...], wall_offset_ns: int
) -> tuple[tuple[int, int], ...]:
    new = ((one.begin_ns, one.end_ns) for one in watch.take_unseen())
    placed = ((begin + wall_offset_ns, end + wall_offset_ns) for begin, end in new)
    return (*before, *placed)[-_MOST_UNSEEN:]


def _placed(stall: Stall, wall_offset_ns: int) -> Stall:
    """In unix time, and its first revision is 1 as that of all that is told."""
    return replace(stall, revision=stall.revision + 1, wall_offset_ns=wall_offset_ns)


def _retransmitting(watch: StallWatch, ports: Mapping[str, PortBook]) -> bool | None:
    """Since its traffic stands still; None: no port counts that."""
    books = [ports[key] for key in watch.record.ports if key in ports]
    if not any(sees_retries(book.counters, book.port) for book in books):
        return None
    since_ns = watch.record.silent_since_ns
    tried = (book.counters.tried_again_ns for book in books)
    return since_ns is not None and any(at is not None and at >= since_ns for at in tried)
