"""Evidence: the faults that were read not long ago, merged and judged for each job.

What is told is a function of the set that is kept, not of its order; only which of several
messages that say the same gives its id to all is settled by which was told first.
"""

from collections.abc import Callable, Hashable, Iterator
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from flapd.core.job.merge import as_one, clusters
from flapd.core.job.primary import judged
from flapd.core.job.view import JobTotals
from flapd.model.fault import Fault
from flapd.model.times import SECOND_NS

HORIZON_NS = 2 * 3600 * SECOND_NS
"""After it was read a fault is held against others for so long."""
SETTLED_NS = 5 * SECOND_NS
"""By then it is known whether another says the same, and it is counted."""
MOST_KEPT = 500
MOST_UNTOLD = 500
"""Read between two ticks; a process in distress prints thousands."""
MOST_ALIKE = 16
ALIKE_NS = 120 * SECOND_NS
"""Of more of a kind from one process, in so short a time, only the number is kept."""
MOST_RETIRED = 2000

_encode = msgspec.msgpack.Encoder().encode


class Read(msgspec.Struct):
    """A fault as it was read."""

    fault: Fault
    read_unix_ns: int

    @property
    def time_ns(self) -> int:
        """When it was written, or else read; unix time."""
        return self.read_unix_ns if self.fault.time_ns is None else self.fault.time_ns


class Told(msgspec.Struct):
    """What is kept of a fault that was told."""

    number: int
    """Of all that were ever told."""
    revision: int
    kind: str
    job: str | None
    primary: bool
    is_same_as_another: bool
    digest: bytes
    """Of all that was told."""
    told_unix_ns: int
    members: list[str]
    """Ids of the messages in it."""
    is_counted: bool = False


class EvidenceRecord(msgspec.Struct):
    read: dict[str, Read] = {}
    """By id, in the order of reading."""
    told: dict[str, Told] = {}
    """By id, in the order of telling."""
    count: int = 0
    """How many were ever told."""
    is_stale: bool = False
    """Something that decides what is to be told has changed, or may have."""
    retired: dict[str, int] = {}
    """Ids of messages that are no news any more, with the unix time of their reading."""


class Evidence:
    """Takes faults as they are read, tells them with each tick if there is something new."""

    def __init__(self, node: str, record: EvidenceRecord, totals: JobTotals) -> None:
        self._node, self._record, self._totals = node, record, totals
        self._alike: dict[Hashable, list[Read]] = {}
        for one in record.read.values():
            self._alike.setdefault(_sort(one.fault), []).append(one)

    def take(self, fault: Fault, now_unix_ns: int) -> None:
        """A message; the same again is no news."""
        read = self._record.read
        if fault.id in read or fault.id in self._record.retired:
            return
        if len(read) >= MOST_KEPT + MOST_UNTOLD:
            self._totals.faults_dropped += 1
            return
        self._record.is_stale = True
        alike = self._alike.setdefault(_sort(fault), [])
        one = Read(fault, now_unix_ns)
        if len(alike) >= MOST_ALIKE and one.time_ns - alike[-MOST_ALIKE].time_ns <= ALIKE_NS:
            last = alike[-1]
            last.fault = replace(last.fault, repeats=last.fault.repeats + fault.repeats)
        else:
            read[fault.id] = one
            alike.append(one)

    def look_again(self) -> None:
        """What is known of jobs has changed: faults may turn out to be of another."""
        self._record.is_stale = True

    def tell(self, now_unix_ns: int, job_of: Callable[[Fault], str | None]) -> list[Fault]:
        """Faults that are new, or are seen in another light by now."""
        told = list(self._news(now_unix_ns, job_of)) if self._record.is_stale else []
        self._record.is_stale = False
        self._settle(now_unix_ns)
        return told

    def _news(self, now_unix_ns: int, job_of: Callable[[Fault], str | None]) -> Iterator[Fault]:
        by_job: dict[str | None, list[Fault]] = {}
        for one in self._record.read.values():
            by_job.setdefault(self._job(one.fault, job_of), []).append(one.fault)
        for job, faults in by_job.items():
            found = clusters(faults)
            for cluster, fault in zip(found, judged(map(as_one, found)), strict=True):
                yield from self._told(
                    replace(fault, node=self._node, job=job), cluster, now_unix_ns
                )

    def _job(self, fault: Fault, job_of: Callable[[Fault], str | None]) -> str | None:
        """What was known once of a job that is forgotten stays true."""
        known = self._record.told.get(fault.id)
        return job_of(fault) or (known.job if known is not None else None)

    def _told(self, fault: Fault, cluster: list[Fault], now_unix_ns: int) -> Iterator[Fault]:
        """Under the id that was told first of those in it; the others are left out from now on."""
        members = [one.id for one in cluster]
        head, *others = self._told_before(members) or members[:1]
        yield from self._revised(replace(fault, id=head), members, now_unix_ns)
        for own in cluster:
            if own.id in others:
                same = replace(own, node=fault.node, job=fault.job, merged_into=head)
                yield from self._revised(same, [own.id], now_unix_ns)

    def _told_before(self, members: list[str]) -> list[str]:
        """In the order of telling."""
        told = self._record.told
        known = [member for member in members if member in told]
        return sorted(known, key=lambda member: told[member].number)

    def _revised(self, fault: Fault, members: list[str], now_unix_ns: int) -> Iterator[Fault]:
        digest = blake2b(_encode(fault), digest_size=16).digest()
        known = self._record.told.get(fault.id)
        if known is not None and known.digest == digest:
            known.members = members
            return
        revision = 1 if known is None else known.revision + 1
        self._record.count += known is None
        self._record.told[fault.id] = Told(
            number=self._record.count if known is None else known.number,
            revision=revision,
            kind=fault.kind,
            job=fault.job,
            primary=fault.primary,
            is_same_as_another=fault.merged_into is not None,
            digest=digest,
            told_unix_ns=now_unix_ns if known is None else known.told_unix_ns,
            members=members,
            is_counted=known is not None and known.is_counted,
        )
        yield replace(fault, revision=revision)

    def _settle(self, now_unix_ns: int) -> None:
        """Counts what is final, and lets go of what is old or too much."""
        if not self._record.told:
            return
        for told in self._record.told.values():
            is_due = abs(now_unix_ns - told.told_unix_ns) >= SETTLED_NS
            if is_due and not told.is_counted and not told.is_same_as_another:
                self._totals.faults[told.kind] += 1
                told.is_counted = True
        for head in list(self._old(now_unix_ns)):
            self._retire(head)
        if len(self._record.read) > MOST_KEPT:
            self._retire_least()

    def _old(self, now_unix_ns: int) -> Iterator[str]:
        """All of a job at once: what follows from another must not outlive it."""
        newest_ns: dict[str | None, int] = {}
        for told in self._record.told.values():
            read_ns = max(map(self._read_ns, told.members))
            newest_ns[told.job] = max(newest_ns.get(told.job, 0), read_ns)
        for head, told in self._record.told.items():
            if newest_ns[told.job] < now_unix_ns - HORIZON_NS:
                yield head

    def _read_ns(self, member: str) -> int:
        read = self._record.read.get(member)
        return 0 if read is None else read.read_unix_ns

    def _retire_least(self) -> None:
        """The oldest that follow from others first."""
        told, read = self._record.told, self._record.read
        for head in sorted(told, key=lambda head: told[head].primary):
            if len(read) <= MOST_KEPT:
                return
            before = len(read)
            self._retire(head)
            self._totals.faults_dropped += before - len(read)

    def _retire(self, head: str) -> None:
        """It is told and stays so."""
        told = self._record.told.pop(head)
        if not told.is_counted and not told.is_same_as_another:
            self._totals.faults[told.kind] += 1
        for member in told.members:
            read = self._record.read.pop(member, None)
            if read is not None:
                self._record.retired[member] = read.read_unix_ns
                self._forget(read)
        while len(self._record.retired) > MOST_RETIRED:
            del self._record.retired[next(iter(self._record.retired))]

    def _forget(self, read: Read) -> None:
        sort = _sort(read.fault)
        alike = [one for one in self._alike.pop(sort) if one is not read]
        if alike:
            self._alike[sort] = alike


def _sort(fault: Fault) -> Hashable:
    return (
        fault.kind,
        fault.form,
        fault.job,
        fault.host,
        fault.pid,
        fault.rank,
        fault.status,
        fault.hca,
        fault.port,
        fault.event,
    )
