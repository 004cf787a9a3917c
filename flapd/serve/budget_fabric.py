"""Budget fabric: what a history tells of the fabric's part in the steps of a period."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from flapd.core.cost.durations import Length, outage_length
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.step_fabric import Fabric, Flapped, Waited, waited
from flapd.core.cost.step_stalls import stalled_seconds
from flapd.core.fabric.view import COUNTED_CAUSES
from flapd.core.spans import Span, length
from flapd.model.event import Outage
from flapd.model.job import Job
from flapd.model.stall import Stall, StallClass
from flapd.model.times import SECOND_NS
from flapd.serve.query import LARGEST_LIMIT
from flapd.store.flap_query import FlapQuery
from flapd.store.history_reader import HistoryReader
from flapd.store.job_queries import JobQuery, StallQuery
from flapd.store.pages import every

MOST_FLAPS = 2000
"""The newest of the period; the answer says where there were more."""
MOST_STALLS = 50_000
"""Likewise."""

AheadNs = Callable[[str], int]
"""By how much the wall clock of a node is ahead."""


class About(NamedTuple):
    """What of the fabric is asked; unix times."""

    since_ns: int
    end_ns: int
    """Of what is known of the period."""
    job: str | None
    """None: all of them."""
    node: str | None
    """None: all of them."""
    sees_jobs: bool


class Period:
    """One period of a history, by one clock."""

    def __init__(
        self, history: HistoryReader, about: About, ahead_ns: AheadNs = lambda _node: 0
    ) -> None:
        self._history, self._about, self._ahead_ns = history, about, ahead_ns

    def jobs(self) -> list[Job]:
        """What its nodes told of the job that is asked about; none where all are."""
        if self._about.job is None:
            return []
        return list(every(self._history.jobs, JobQuery(**self._asked())))

    def fabric(self, inputs: Inputs, jobs: Iterable[Job]) -> Fabric:
        """What is not in a history is left out."""
        stalls = self._stalls() if self._about.sees_jobs else []
        return Fabric(
            over_seconds=self._over_seconds(jobs),
            waited=self._waited(inputs),
            stalled_seconds=self._stalled(stalls[:MOST_STALLS]) if stalls else None,
            stalled_more=len(stalls) > MOST_STALLS,
        )

    def _over_seconds(self, jobs: Iterable[Job]) -> float:
        """For which the job ran, as far as that is known."""
        ran = [
            span
            for job in jobs
            if (span := self._within(job.node, job.since_unix_ns, job.until_unix_ns))
        ]
        whole = [(self._about.since_ns, self._about.end_ns)]
        return max(1.0, length(ran or whole) / SECOND_NS)

    def _waited(self, inputs: Inputs) -> Waited:
        flaps = list(islice(self._outages(), MOST_FLAPS + 1))
        found = waited([self._flapped(flap) for flap in flaps[:MOST_FLAPS]], inputs)
        return replace(found, more=len(flaps) > MOST_FLAPS)

    def _outages(self) -> Iterator[Outage]:
        """That the fabric caused, newest first."""
        for outage in every(self._history.flaps, FlapQuery(**self._asked())):
            if outage.cause in COUNTED_CAUSES and not outage.grace:
                yield outage

    def _flapped(self, outage: Outage) -> Flapped:
        began_ns = outage.down.latest_unix_ns - self._ahead_ns(outage.node)
        at_seconds = (began_ns - self._about.since_ns) / SECOND_NS
        return Flapped(at_seconds, _length(outage, (self._about.end_ns - began_ns) / SECOND_NS))

    def _stalls(self) -> list[Stall]:
        query = StallQuery(**self._asked())
        return list(islice(every(self._history.stalls, query), MOST_STALLS + 1))

    def _stalled(self, stalls: Sequence[Stall]) -> dict[str, float]:
        spans: dict[StallClass, list[Span]] = defaultdict(list)
        for stall in stalls:
            span = self._within(stall.node, stall.begin_unix_ns, _seen_until(stall))
            if span:
                spans[stall.stall_class].append(span)
        return stalled_seconds(spans)

    def _within(self, node: str, begin_ns: int, end_ns: int | None) -> Span | None:
        """The part in the period; what goes on lasts until its end."""
        ahead_ns = self._ahead_ns(node)
        begin_ns = max(begin_ns - ahead_ns, self._about.since_ns)
        last_ns = self._about.end_ns
        end_ns = last_ns if end_ns is None else min(end_ns - ahead_ns, last_ns)
        return (begin_ns, end_ns) if begin_ns < end_ns else None

    def _asked(self) -> dict[str, Any]:
        about = self._about
        span = {"since_unix_ns": about.since_ns, "until_unix_ns": about.end_ns}
        return {**span, "job": about.job, "node": about.node, "limit": LARGEST_LIMIT}


def _seen_until(stall: Stall) -> int | None:
    """So long it is sure that traffic stood still."""
    return None if stall.end_unix_ns is None else stall.end_unix_ns - stall.end_unseen_ns


def _length(outage: Outage, age_seconds: float) -> Length:
    if outage.status == "open":
        return Length(max(0.0, age_seconds), None)
    low, high, up = outage.down_ns_min, outage.down_ns_max, outage.up
    if low is None or high is None or up is None:
        return Length(0.0, None)
    span = (
        (up.earliest_ns - outage.down.latest_ns) / SECOND_NS,
        (up.latest_ns - outage.down.earliest_ns) / SECOND_NS,
    )
    return outage_length((low / SECOND_NS, high / SECOND_NS), outage.count, span)
