"""StallWatch: finds when the traffic of one training job stands still on this node.

Idle is what was read and had no traffic; a port that is not read is not idle. A stall begins
where the last port that carries the job's traffic fell silent, and ends with the next traffic on
any. A gap that is longer than those of ordinary steps is a stall, whatever the cause; one that
begins with a link that went down is one as soon as it is unlike ordinary gaps.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b

from msgspec.structs import replace

from flapd.core.job.stall.classify import Pause, Surroundings, classify, recurs
from flapd.core.job.stall.record import Down, Unseen, WatchRecord
from flapd.core.job.stall.rhythm import SHORTEST_GAP_NS, SHORTEST_STALL_NS
from flapd.core.job.stall.traffic import PortTraffic, Span
from flapd.model.stall import Slowdown, Stall, StallClass
from flapd.model.times import SECOND_NS

_MEMORY_NS = 60 * SECOND_NS
"""A port without traffic for longer than that, before all fell silent, does not carry the job."""
_UNREAD_NS = 3 * SECOND_NS
_BEFORE_NS = 5 * SECOND_NS
_AFTER_NS = SECOND_NS
"""A link that went down so long before or after traffic stopped may be why."""
_LONGEST_ENDING_NS = 300 * SECOND_NS
"""A job saves and tears down after its last step; one that stood still for longer hung before."""
_YOUNG_NS = 60 * SECOND_NS
"""A job connects, loads and compiles for so long and longer before it moves data."""
_PERIOD_EVERY_NS = 10 * SECOND_NS
_PAUSES = 16
_DOWNS = 16
_UNSEEN = 16
_UNSEEN_NS = SECOND_NS
"""No stall is so short."""


class StallWatch:
    """Fed with samples in the order of their time, port by port."""

    def __init__(
        self,
        node: str,
        job: str,
        rates: Mapping[str, float | None],
        *,
        training: bool,
        since_ns: int,
        record: WatchRecord | None = None,
    ) -> None:
        """`rates` has the ports that the job uses, with their line rates in bytes a second.

        Only a training job works in step: of others nothing is told.
        """
        self.record = WatchRecord() if record is None else record
        self._node, self._job, self._since_ns = node, job, since_ns
        self.record.ports = {
            port: self._traffic(port, rate) for port, rate in rates.items() if training
        }
        self.record.downs = [down for down in self.record.downs if down.port in self.record.ports]

    @property
    def period_ns(self) -> int | None:
        """Of a step; None: it is not known."""
        return self.record.period_ns

    @property
    def newest_ns(self) -> int:
        """The end of the last sample of any port."""
        return max((port.last_ns or 0 for port in self.record.ports.values()), default=0)

    @property
    def carriers(self) -> list[str]:
        """Ports that had traffic at some time."""
        ports = self.record.ports.items()
        return [name for name, port in ports if port.busy_until_ns is not None]

    def sample(self, port: str, time_ns: int, total_bytes: int) -> list[Stall | Slowdown]:
        """The port's count of bytes at this time; what it makes known."""
        traffic = self.record.ports.get(port)
        if traffic is None:
            return []
        span = traffic.span_to(time_ns, total_bytes)
        told: list[Stall | Slowdown] = [] if span is None else list(self._speed(traffic, span))
        if span is not None and span.kind == "busy":
            # While it was busy before as well, no gap can end here.
            told += [] if traffic.idle_since_ns is None else self._resumed(traffic, span)
            told += self._over(span)
            if self._is_first(traffic):
                self.record.first_ns = span.begin_ns
            self._note_traffic(span)
        elif span is not None and self._is_news(span, traffic):
            told += self._over(span)
            self._note_unseen_traffic(span)
        traffic.take(time_ns, total_bytes, span)
        if span is not None and span.kind != "unknown" and traffic.busy_until_ns is not None:
            self._note_seen(span)
        if span is not None and span.kind == "idle":
            told += self._still_silent(traffic)
        return told

    def take_unseen(self) -> list[Unseen]:
        """Times of which nothing is known, since this was asked last."""
        unseen, self.record.unseen = self.record.unseen, []
        return unseen

    def link_down(self, port: str, earliest_ns: int, latest_ns: int) -> list[Stall]:
        """A port of this node went down, some time between these two."""
        if port not in self.record.ports:
            return []
        downs = self.record.downs
        self.record.downs = [*downs[1 - _DOWNS :], Down(port, earliest_ns, latest_ns)]
        stall = self.record.open
        if stall is None or self._cause(stall.begin_ns, latest_ns) is None:
            return []
        return self._revise(stall)

    def around(self, surroundings: Surroundings) -> list[Stall]:
        """What else is seen of the node; an open stall may turn out to be something else."""
        self.record.surroundings = surroundings
        return [] if self.record.open is None else self._revise(self.record.open)

    def end(self, time_ns: int) -> list[Stall]:
        """The job is over."""
        stall = self.record.open
        if stall is None:
            return []
        if time_ns - stall.begin_ns <= _LONGEST_ENDING_NS:
            self.record.surroundings = replace(self.record.surroundings, processes=False)
        (last,) = self._revise(stall) or [stall]
        return self._close(last, max(time_ns, last.begin_ns))

    def _traffic(self, port: str, rate: float | None) -> PortTraffic:
        """Known ones go on, at the rate that is known now."""
        traffic = self.record.ports.get(port) or PortTraffic(rate)
        traffic.rate = rate
        return traffic

    def _carriers(self) -> list[tuple[str, PortTraffic]]:
        """Ports that had traffic in the last minute before all fell silent."""
        since_ns = self.record.silent_since_ns
        if since_ns is None:
            return []
        return [
            (name, port)
            for name, port in self.record.ports.items()
            if port.busy_until_ns is not None and port.busy_until_ns >= since_ns - _MEMORY_NS
        ]

    def _watched(self, newest: PortTraffic) -> list[PortTraffic]:
        """Carriers that are still read."""
        now_ns = newest.last_ns or 0
        ports = (port for _, port in self._carriers())
        return [port for port in ports if (port.last_ns or 0) >= now_ns - _UNREAD_NS]

    def _known_since_ns(self, newest: PortTraffic) -> int | None:
        """Since when all of them are known to be idle; None: one is busy or not known."""
        since = [port.idle_since_ns for port in self._watched(newest)]
        known = [one for one in since if one is not None]
        return max(known) if known and len(known) == len(since) else None

    def _still_silent(self, newest: PortTraffic) -> list[Stall]:
        record, since_ns, now_ns = self.record, self.record.silent_since_ns, newest.last_ns or 0
        if record.open is not None or since_ns is None or now_ns - since_ns < SHORTEST_GAP_NS:
            return []
        cause = self._cause(since_ns, now_ns)
        if cause is None and not record.rhythm.is_known:
            return []
        needed_ns = record.rhythm.stall_after_ns if cause is None else self._unlike_ns()
        if now_ns - since_ns < needed_ns:
            return []
        known_since_ns = self._known_since_ns(newest)
        if known_since_ns is None:
            return []
        seen_until_ns = min(port.last_ns or 0 for port in self._watched(newest))
        if seen_until_ns - known_since_ns < needed_ns:
            return []
        unsure_ns = max(known_since_ns - since_ns, record.silent_unsure_ns)
        return self._open(since_ns, cause, unsure_ns=unsure_ns)

    def _unlike_ns(self) -> int:
        """Longer than ordinary gaps, of a job whose gaps are known; else than any."""
        rhythm = self.record.rhythm
        if not rhythm.is_known:
            return SHORTEST_STALL_NS
        return max(SHORTEST_GAP_NS, rhythm.longest_usual_ns * 11 // 10 + SHORTEST_GAP_NS)

    def _cause(self, silent_since_ns: int, until_ns: int) -> Down | None:
        """The link that went down when traffic stopped, or while it was to go on again."""
        after_ns = max(_AFTER_NS, self.record.rhythm.longest_usual_ns)
        window = range(silent_since_ns - _BEFORE_NS, silent_since_ns + after_ns + 1)
        return next(
            (
                down
                for down in self.record.downs
                if down.earliest_ns <= until_ns and down.latest_ns in window and self._held_up(down)
            ),
            None,
        )

    def _held_up(self, down: Down) -> bool:
        """The port carried the job's traffic until it went down, and has had none since."""
        traffic = self.record.ports[down.port]
        last_ns = traffic.busy_until_ns
        if last_ns is None:
            return False
        slack_ns = _samples(traffic)
        return down.earliest_ns - _MEMORY_NS <= last_ns <= down.latest_ns + slack_ns

    def _resumed(self, port: PortTraffic, span: Span) -> list[Stall]:
        """Traffic again on a port that was idle."""
        record, since_ns = self.record, self.record.silent_since_ns
        if record.open is not None or since_ns is None or span.begin_ns <= since_ns:
            return []
        if record.silent_unsure_ns:
            return []
        known_since_ns = self._known_since_ns(port)
        if known_since_ns is None or known_since_ns - since_ns > port.interval_ns:
            # Part of the gap was not seen: it may have been shorter.
            return []
        return self._gap(since_ns, span.begin_ns)

    def _is_first(self, traffic: PortTraffic) -> bool:
        """Nothing moved before, and it was looked at soon after the job's start."""
        idle_ns = traffic.idle_since_ns
        is_first = self.record.silent_since_ns is None and idle_ns is not None
        return is_first and (idle_ns or 0) <= self._since_ns + _YOUNG_NS

    def _is_news(self, span: Span, traffic: PortTraffic) -> bool:
        """Nobody looked, at no port, and something moved meanwhile."""
        seen_ns = self.record.seen_until_ns
        is_alone = seen_ns is None or span.begin_ns >= seen_ns - _samples(traffic)
        return span.kind == "unknown" and span.moved_bytes > 0 and is_alone

    def _over(self, span: Span) -> list[Stall]:
        """There was traffic again; if nobody looked, at some time since somebody did."""
        record = self.record
        if record.open is None:
            return []
        end_ns = span.begin_ns if span.kind == "busy" else span.end_ns
        end_ns = max(end_ns, record.open.begin_ns)
        seen_ns = max(record.open.begin_ns, record.seen_until_ns or end_ns)
        return self._close(record.open, end_ns, unseen_ns=max(0, end_ns - seen_ns))

    def _note_unseen_traffic(self, span: Span) -> None:
        """There was some, and nobody knows when."""
        record = self.record
        if record.silent_since_ns is not None and span.end_ns > record.silent_since_ns:
            record.silent_since_ns = span.end_ns
            record.silent_unsure_ns = span.end_ns - span.begin_ns

    def _note_seen(self, span: Span) -> None:
        record, until_ns = self.record, self.record.seen_until_ns
        if until_ns is not None and span.begin_ns - until_ns > _UNSEEN_NS:
            record.unseen = [*record.unseen[1 - _UNSEEN :], Unseen(until_ns, span.begin_ns)]
        record.seen_until_ns = max(until_ns or 0, span.end_ns)

    def _note_traffic(self, span: Span) -> None:
        record = self.record
        since_ns = record.silent_since_ns
        new_ns = span.end_ns - max(span.begin_ns, span.begin_ns if since_ns is None else since_ns)
        if new_ns <= 0:
            return
        record.silent_since_ns, record.silent_unsure_ns = span.end_ns, 0
        record.rhythm.traffic_ns += new_ns
        record.busy.take(span.begin_ns, span.end_ns)
        if span.end_ns - record.period_at_ns >= _PERIOD_EVERY_NS:
            record.period_ns, record.period_at_ns = record.busy.period_ns(), span.end_ns

    def _gap(self, since_ns: int, until_ns: int) -> list[Stall]:
        """A gap that was not told as a stall while it lasted."""
        rhythm, length_ns = self.record.rhythm, until_ns - since_ns
        cause = self._cause(since_ns, until_ns)
        unlike = length_ns >= SHORTEST_GAP_NS and not rhythm.is_usual(length_ns)
        if cause is not None and rhythm.is_known and unlike and self._is_cut(cause, since_ns):
            opened = self._open(since_ns, cause)
            return [*opened, *self._close(opened[0], until_ns)]
        rhythm.take_gap(until_ns, length_ns)
        return []

    def _is_cut(self, down: Down, since_ns: int) -> bool:
        """Traffic stopped with the link, not before it."""
        return since_ns >= down.earliest_ns - _samples(self.record.ports[down.port])

    def _open(self, since_ns: int, cause: Down | None, *, unsure_ns: int = 0) -> list[Stall]:
        record = self.record
        order = sorted(self._carriers(), key=lambda one: one[1].busy_until_ns or 0)
        begin_ns, cut = since_ns, cause is not None and self._is_cut(cause, since_ns)
        if cause is not None and cut:
            last_ns = record.ports[cause.port].busy_until_ns or since_ns
            begin_ns = min(since_ns, max(last_ns, cause.earliest_ns))
        kind, blind = self._class(begin_ns, None, link_event=cause is not None)
        record.open = Stall(
            id=self._id(begin_ns),
            node=self._node,
            job=self._job,
            begin_ns=begin_ns,
            resolution_ns=max(unsure_ns, *(port.interval_ns for _, port in order)),
            stall_class=kind,
            ports=tuple(name for name, _ in order),
            expected_seconds=0.0 if cut else record.rhythm.usual_ns / SECOND_NS,
            blind_to=blind,
        )
        return [record.open]

    def _revise(self, stall: Stall) -> list[Stall]:
        """Its class, by what is known now."""
        link_event = stall.stall_class == "local_link" or (
            self._cause(stall.begin_ns, self.newest_ns) is not None
        )
        kind, blind = self._class(stall.begin_ns, None, link_event=link_event)
        if (kind, blind) == (stall.stall_class, stall.blind_to):
            return []
        self.record.open = replace(
            stall, revision=stall.revision + 1, stall_class=kind, blind_to=blind
        )
        return [self.record.open]

    def _close(self, stall: Stall, end_ns: int, *, unseen_ns: int = 0) -> list[Stall]:
        record, length_ns = self.record, end_ns - stall.begin_ns
        link_event = stall.stall_class == "local_link"
        kind, blind = self._class(stall.begin_ns, length_ns, link_event=link_event)
        if not link_event:
            record.rhythm.take_stall(end_ns, length_ns)
            record.pauses = [*record.pauses[1 - _PAUSES :], Pause(stall.begin_ns, length_ns)]
        record.open, record.downs = None, []
        is_sharp = unseen_ns <= max(_UNSEEN_NS, stall.resolution_ns)
        return [
            replace(
                stall,
                revision=stall.revision + 1,
                end_ns=end_ns,
                end_unseen_ns=0 if is_sharp else unseen_ns,
                stall_class=kind,
                blind_to=blind if is_sharp else (*blind, "end"),
            )
        ]

    def _class(
        self, begin_ns: int, length_ns: int | None, *, link_event: bool
    ) -> tuple[StallClass, tuple[str, ...]]:
        """Only of a stall that is over it can be said that it is like others."""
        pause = None if length_ns is None else Pause(begin_ns, length_ns)
        return classify(
            self.record.surroundings,
            link_event=link_event,
            job_age_ns=begin_ns - self._since_ns,
            recurs=pause is not None and recurs(pause, self.record.pauses),
        )

    def _speed(self, traffic: PortTraffic, span: Span) -> Iterator[Slowdown]:
        record = self.record
        if record.open is not None or span.kind == "unknown":
            record.speed.leave_out()
            return
        since_ns = record.silent_since_ns
        is_step = (
            span.kind == "busy"
            and traffic.idle_since_ns is not None
            and since_ns is not None
            and span.begin_ns - since_ns >= SHORTEST_GAP_NS
        )
        if is_step or not record.rhythm.gaps_ns:
            changed = record.speed.close(self._job, span.begin_ns)
            if changed is not None:
                yield changed
        record.speed.add(span.end_ns, span.moved_bytes)

    def _id(self, begin_ns: int) -> str:
        said = f"{self._node}|{self._job}|{begin_ns}"
        return "stall-" + blake2b(said.encode(), digest_size=8).hexdigest()


def _samples(traffic: PortTraffic) -> int:
    """Two of them: so far a stamp of a link and one of its traffic may be apart."""
    return 2 * traffic.interval_ns
