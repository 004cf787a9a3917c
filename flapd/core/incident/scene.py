"""Scene: one job with all evidence of what may have hurt it."""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from flapd.core.incident.attempts import ended_with
from flapd.core.incident.background import Background, downs_of
from flapd.core.incident.evidence import Evidence, begin_ns, end_ns, newest
from flapd.core.incident.in_order import InOrder
from flapd.core.incident.out_of_step import OutOfStep
from flapd.core.incident.terms import Terms, terms_of
from flapd.core.spans import overlap
from flapd.model.event import Outage
from flapd.model.fault import Fault
from flapd.model.job import Job
from flapd.model.stall import Stall
from flapd.model.standing import Standing
from flapd.model.times import SECOND_NS

FOREVER_NS = 1 << 62
_GID_TABLE_CHANGE = 18
"""IBV_EVENT_GID_CHANGE (libibverbs, enum ibv_event_type)."""
_LATE_NS = 120 * SECOND_NS
LONGEST_OPEN_NS = 3600 * SECOND_NS
"""What goes on for longer is told as it stands then."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    job: str | None
    """None: what nobody knows the job of, and outages that hit none."""
    jobs: tuple[Job, ...]
    """Of each of its nodes, and of each attempt; empty: only its errors are known."""
    keys: frozenset[str]
    """Of ports whose outages may have hurt it."""
    outages: tuple[Outage, ...]
    """In order of time."""
    in_order: InOrder
    """The same."""
    alone: frozenset[str]
    """Ids of those that are news without any symptom."""
    faults: tuple[Fault, ...]
    stalls: tuple[Stall, ...]
    standings: tuple[Standing, ...]
    terms: Terms
    background: Background
    out_of_step: OutOfStep
    gid_changes: tuple[Fault, ...]
    evidence: Evidence
    known_until_ns: int
    """Up to when anything is known."""
    hits: tuple[int, ...] = ()
    """When something began to hurt the job, as far back as is remembered, in order; unix time."""
    latest_ns: int = FOREVER_NS
    """What came after is not looked at, so that what is over stays as it was told."""
    alike: Mapping[str, tuple[Fault | Stall, ...]] = {}
    """By a symptom's id, what other nodes tell of the same; it stands for all of them."""
    other_causes: Mapping[str, str] = {}
    """By a symptom's id, the other cause that its own node found, which sees more of it."""

    @property
    def until_ns(self) -> int:
        """Up to when anything that matters is known."""
        return min(self.known_until_ns, self.latest_ns)

    @property
    def knows_ports(self) -> bool:
        """It is known which ports the job uses."""
        return any(job.ports for job in self.jobs)

    def was_cut_off(self, stall: Stall) -> bool:
        """Traffic did not come back: the job was over."""
        if stall.end_unix_ns is None:
            return False
        return ended_with(self.jobs, stall.node, stall.begin_unix_ns, stall.end_unix_ns)

    def as_seen_on(self, node: str, stall: Stall) -> Stall | None:
        """The stall as this node knows it; None: it knows of none."""
        alike = (stall, *self.alike.get(stall.id, ()))
        return next((one for one in alike if isinstance(one, Stall) and one.node == node), None)

    def never_ended(self, stall: Stall) -> bool:
        """It goes on, or was cut off."""
        return stall.end_ns is None or self.was_cut_off(stall)

    def over_at_ns(self) -> int | None:
        """When the job was over; None: it runs, or is not known."""
        ends = [job.until_unix_ns for job in self.jobs]
        known = [end for end in ends if end is not None]
        return max(known) if known and len(known) == len(ends) else None


def scenes_of(evidence: Evidence, names: Collection[str] | None = None) -> list[Scene]:
    """Each job's, or those of these jobs, in order of their names; that of no job last."""
    outages = sorted(newest(evidence.outages), key=lambda one: (begin_ns(one), one.id))
    stalls, jobs = newest(evidence.stalls), newest(evidence.jobs)
    by_job: dict[str, list[Job]] = {}
    for job in jobs:
        by_job.setdefault(job.job, []).append(job)
    faults = [_with_job(one, evidence, by_job) for one in newest(evidence.faults)]
    faults = [one for one in faults if one.merged_into is None]
    downs = downs_of(evidence, outages)
    if names is None:
        names = {*by_job, *(one.job for one in stalls), *(one.job for one in faults if one.job)}
    scenes = [
        _scene(name, by_job.get(name, []), outages, faults, stalls, downs, evidence)
        for name in sorted(names)
    ]
    return [*scenes, _rest(outages, faults, jobs, downs, evidence)]


def _scene(
    name: str,
    jobs: list[Job],
    outages: list[Outage],
    faults: list[Fault],
    stalls: list[Stall],
    downs: Mapping[str, tuple[int, ...]],
    evidence: Evidence,
) -> Scene:
    own = tuple(fault for fault in faults if fault.job == name)
    hit = tuple(one for one in outages if not jobs or any(may_hit(one, job) for job in jobs))
    stood = tuple(stall for stall in stalls if stall.job == name)
    keys = {key for job in jobs for key in job.ports} or _all_keys(outages, evidence)
    return Scene(
        job=name,
        jobs=tuple(jobs),
        keys=frozenset(keys),
        outages=hit,
        in_order=InOrder(hit),
        alone=frozenset(one.id for one in hit if jobs and one.settled),
        faults=own,
        stalls=stood,
        standings=tuple(evidence.standings.get(name, ())),
        terms=_terms(jobs, _layers(keys, own, evidence), evidence),
        background=Background(keys, downs, evidence.watched),
        out_of_step=OutOfStep(own),
        gid_changes=_gid_changes(own),
        evidence=evidence,
        known_until_ns=_known_until_ns(evidence, own, stood, hit),
    )


def _rest(
    outages: list[Outage],
    faults: list[Fault],
    jobs: list[Job],
    downs: Mapping[str, tuple[int, ...]],
    evidence: Evidence,
) -> Scene:
    """What has no job. An outage that hit none matters where somebody would suspect it."""
    own = tuple(fault for fault in faults if fault.job is None)
    beside = [one for one in outages if is_beside(one, jobs)]
    keys = _all_keys(outages, evidence)
    seen = tuple(outages if own else beside)
    return Scene(
        job=None,
        jobs=(),
        keys=frozenset(keys),
        outages=seen,
        in_order=InOrder(seen),
        alone=frozenset(one.id for one in beside if one.settled),
        faults=own,
        stalls=(),
        standings=tuple(evidence.standings.get("", ())),
        terms=_terms([], _layers(keys, own, evidence), evidence),
        background=Background(keys, downs, evidence.watched),
        out_of_step=OutOfStep(own),
        gid_changes=_gid_changes(own),
        evidence=evidence,
        known_until_ns=_known_until_ns(evidence, own, (), seen),
    )


def _terms(jobs: list[Job], layers: frozenset[str], evidence: Evidence) -> Terms:
    return terms_of(jobs, layers, evidence.job, evidence.cost, evidence.retries)


def _known_until_ns(
    evidence: Evidence,
    faults: Iterable[Fault],
    stalls: Iterable[Stall],
    outages: Iterable[Outage],
) -> int:
    if evidence.now_ns is not None:
        return evidence.now_ns
    ends = [fault.time_ns or 0 for fault in faults]
    ends += [stall.end_unix_ns or stall.begin_unix_ns for stall in stalls]
    ends += [end_ns(outage) or begin_ns(outage) for outage in outages]
    return max(ends, default=0)


def _gid_changes(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    return tuple(
        one for one in faults if one.kind == "port_event" and one.status == _GID_TABLE_CHANGE
    )


def may_hit(outage: Outage, job: Job) -> bool:
    """The job ran on its node, and uses its port or nobody knows which."""
    uses = not job.ports or outage.key in job.ports
    return uses and _ran(outage, job)


def is_beside(outage: Outage, jobs: Iterable[Job]) -> bool:
    """A job ran on the node, and none of those that did uses the port."""
    ran = [job for job in jobs if _ran(outage, job)]
    return bool(ran) and not any(may_hit(outage, job) for job in ran)


def _ran(outage: Outage, job: Job) -> bool:
    lasted = (begin_ns(outage), end_ns(outage) or FOREVER_NS)
    return job.node == outage.node and overlap(
        lasted, (job.since_unix_ns, job.until_unix_ns or FOREVER_NS)
    )


def _all_keys(outages: Iterable[Outage], evidence: Evidence) -> set[str]:
    return {*evidence.watched, *(outage.key for outage in outages)}


def _with_job(fault: Fault, evidence: Evidence, jobs: Mapping[str, list[Job]]) -> Fault:
    """A counter of a port tells of the job that uses it."""
    if fault.job is not None or fault.hca is None:
        return fault
    name = f"{fault.hca}/{fault.port or 1}"
    keys = {key for key, port in evidence.ports.items() if port.name == name}
    using = [
        (late_ns, job)
        for job, ones in jobs.items()
        for one in ones
        if one.node == fault.node and keys & set(one.ports)
        if (late_ns := _late_ns(one, fault)) <= _LATE_NS
    ]
    return replace(fault, job=min(using)[1]) if using else fault


def _late_ns(job: Job, fault: Fault) -> int:
    """How long after its end a port of it told of this; 0 while it ran."""
    if fault.time_ns is None:
        return 0
    if fault.time_ns < job.since_unix_ns:
        return FOREVER_NS
    return 0 if job.until_unix_ns is None else max(0, fault.time_ns - job.until_unix_ns)


def _layers(keys: Iterable[str], faults: Iterable[Fault], evidence: Evidence) -> frozenset[str]:
    return frozenset(_link_layers(keys, faults, evidence))


def _link_layers(keys: Iterable[str], faults: Iterable[Fault], evidence: Evidence) -> Iterator[str]:
    for key in keys:
        if key in evidence.ports:
            yield evidence.ports[key].link_layer
    if any(fault.local_gid is not None for fault in faults):
        # NCCL prints GIDs of Ethernet ports only (src/transport/net_ib.cc, 2.18 and later).
        yield "Ethernet"
