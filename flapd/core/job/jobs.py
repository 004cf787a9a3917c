"""Jobs: which run on this node, from when to when, and what is known of each."""

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

from msgspec.structs import replace

from flapd.core.cost.settings import JobSettings
from flapd.core.job.told import JobKnown, Seen, revised, told_of
from flapd.model.finding import Member, Network, Note, Setting
from flapd.model.job import Job, JobFound
from flapd.model.times import SECOND_NS

KEPT_NS = 3 * 3600 * SECOND_NS
"""After its end a job is known for so long: longer than its faults are held against others."""
MOST_ENDED = 16
_EARLY_NS = 60 * SECOND_NS
_LATE_NS = 120 * SECOND_NS
"""A job may tell something so long before it was seen or after it was gone: launchers do."""
_MOST_HCAS = 64


class Jobs:
    """Takes what is found of jobs, tells them as they change."""

    def __init__(
        self,
        node: str,
        settings: JobSettings,
        record: dict[str, JobKnown],
        lost_revisions: dict[str, int],
    ) -> None:
        self._node, self._settings, self._record = node, settings, record
        self._lost_revisions = lost_revisions

    def seen(self, found: JobFound, now_unix_ns: int) -> None:
        """It runs; under the name of one that is over it is another, unless a process goes on."""
        known = self._record.get(found.job)
        if known is None or (known.until_unix_ns is not None and not _goes_on(known, found)):
            started = (rank.started_unix_ns for rank in found.ranks)
            since_unix_ns = min(started, default=now_unix_ns)
            ranks = [] if known is None else known.ranks
            known = JobKnown(found, since_unix_ns, now_unix_ns, ranks=ranks)
            self._record.pop(found.job, None)
            self._record[found.job] = known
        known.take_found(found)
        known.seen_unix_ns, known.until_unix_ns = now_unix_ns, None

    def present(self, names: Iterable[str], now_unix_ns: int) -> list[str]:
        """Only these run; those that are over by now."""
        present = set(names)
        over = [name for name in self.running() if name not in present]
        for name in self.running():
            self._record[name].seen_unix_ns = now_unix_ns
        for name in over:
            self._record[name].until_unix_ns = now_unix_ns
        return over

    def end_all(self) -> list[str]:
        """The machine started anew: nobody knows when they ended."""
        over = self.running()
        for name in over:
            self._record[name].until_unix_ns = self._record[name].seen_unix_ns
        return over

    def forget(self, now_unix_ns: int) -> bool:
        """Lets go of those that are over for long, and of more than can be kept."""
        ended = {
            name: known.until_unix_ns
            for name, known in self._record.items()
            if known.until_unix_ns is not None
        }
        old = {name for name, until_ns in ended.items() if until_ns < now_unix_ns - KEPT_NS}
        old |= set(sorted(ended, key=lambda name: (ended[name], name))[:-MOST_ENDED])
        for name in old:
            del self._record[name]
        return bool(old)

    def running(self) -> list[str]:
        return [name for name, known in self._record.items() if known.until_unix_ns is None]

    def known(self, name: str) -> JobKnown | None:
        return self._record.get(name)

    def queue_pairs_in_error(self, name: str) -> dict[str, int]:
        """By port key, as they were at the last look at this job."""
        known = self._record.get(name)
        return {} if known is None else known.found.queue_pairs_in_error

    def of_process(self, host: str | None, pid: int | None) -> str | None:
        """The job that has this process, or had it; the latest where several had."""
        if pid is None:
            return None
        found = (name for name, one in self._record.items() if one.has_process(host, pid))
        return max(found, key=lambda name: self._record[name].since_unix_ns, default=None)

    def only_one(self, at_unix_ns: int) -> str | None:
        """The job that ran here then, if there was no other."""
        ran = self._around(at_unix_ns)
        return ran[0] if len(ran) == 1 else None

    def at(self, at_unix_ns: int | None) -> list[str]:
        """Those that ran then, else those that had just ended or were to begin; None: that run."""
        if at_unix_ns is None:
            return self.running()
        around = self._around(at_unix_ns)
        return [name for name in around if _lived(self._record[name], at_unix_ns)] or around

    def _around(self, at_unix_ns: int) -> list[str]:
        return [name for name, known in self._record.items() if _ran(known, at_unix_ns)]

    def take_note(self, name: str, note: Note) -> None:
        known = self._record.get(name)
        if known is None:
            return
        if isinstance(note, Setting):
            known.take_setting(note)
        elif isinstance(note, Member):
            known.take_member(note)
        elif isinstance(note, Network):
            known.hcas = list(dict.fromkeys([*known.hcas, *note.hcas]))[:_MOST_HCAS]

    def changed(self, seen_of: Callable[[JobKnown], Seen]) -> Iterator[Job]:
        """Each of which something is to be told, for the first time or anew."""
        for known in self._record.values():
            now = told_of(known, self._id(known), self._node, self._settings, seen_of(known))
            job = revised(known.told, now)
            if job is not None:
                if known.told is None:
                    job = replace(job, revision=1 + self._lost_revisions.pop(job.id, 0))
                known.told = job
                yield job

    def _id(self, known: JobKnown) -> str:
        said = f"{self._node}|{known.found.job}|{known.since_unix_ns}"
        return "job-" + blake2b(said.encode(), digest_size=8).hexdigest()


def _goes_on(known: JobKnown, found: JobFound) -> bool:
    """One of its processes was known; or is older than the job that was, and was not seen then."""
    before = {(rank.pid, rank.started_unix_ns) for rank in known.ranks}
    return any(
        (rank.pid, rank.started_unix_ns) in before or rank.started_unix_ns <= known.since_unix_ns
        for rank in found.ranks
    )


def _lived(known: JobKnown, at_unix_ns: int) -> bool:
    until_ns = known.until_unix_ns
    return known.since_unix_ns <= at_unix_ns and (until_ns is None or at_unix_ns <= until_ns)


def _ran(known: JobKnown, at_unix_ns: int) -> bool:
    until_ns = known.until_unix_ns
    return known.since_unix_ns - _EARLY_NS <= at_unix_ns and (
        until_ns is None or at_unix_ns <= until_ns + _LATE_NS
    )
