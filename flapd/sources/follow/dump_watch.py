"""DumpWatch: dumps where the configuration looks for them, and where ranks say they wrote one."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from flapd.model.finding import DumpWritten
from flapd.model.observation import DumpsRead
from flapd.sources.follow.dump_files import DumpDesk, DumpFile, Written
from flapd.sources.follow.following import Following
from flapd.sources.follow.pattern import Pattern, fixed_part
from flapd.sources.follow.regular import open_regular
from flapd.sources.jobs.finder import Job
from flapd.sources.jobs.inside import open_inside
from flapd.sources.jobs.procfs import ProcFs
from flapd.sources.jobs.rank_process import RankProcess

MOST_FILES = 2000
MOST_NOTED = 512
"""Dumps that ranks spoke of."""


class DumpWatch:
    """Used from all threads of the reader."""

    def __init__(
        self,
        following: Following,
        proc: ProcFs,
        jobs: Callable[[], tuple[Job, ...]],
        job_with: Callable[[int | None, int, str], str | None],
        tell: Callable[[DumpsRead], None],
        *,
        from_start: bool,
    ) -> None:
        self._following = following
        self._proc = proc
        self._jobs = jobs
        self._job_with = job_with
        self._from_start = from_start
        self._noted: dict[tuple[str, str], None] = {}
        self._paths: set[Path] = set()
        self.desk = DumpDesk(self._job_of, tell, following.note_failure)

    def add_pattern(self, pattern: str) -> None:
        """What is there before us is no news."""
        device = self._following.mount_of(fixed_part(pattern)).device
        self._following.turns.add(Pattern(pattern, self._add_path), device)

    def _add_path(self, path: Path, is_new: bool) -> None:
        if path in self._paths or len(self._paths) >= MOST_FILES:
            return
        self._paths.add(path)
        dump = DumpFile(
            str(path),
            partial(open_regular, path, follow=False),
            self.desk.take,
            is_old=not is_new and not self._from_start,
        )
        self._following.turns.add(dump, self._following.mount_of(str(path)).device)

    def written(self, job: str | None, note: DumpWritten) -> None:
        """It is a path of the job's, and opened as the job would."""
        known = self._known(job)
        if known is None or (known.found.job, note.file) in self._noted:
            return
        if len(self._noted) >= MOST_NOTED:
            self._noted.pop(next(iter(self._noted)))
        self._noted[known.found.job, note.file] = None
        ranks = [rank for rank in known.ranks if rank.membership.rank == note.rank]
        dump = DumpFile(
            note.file,
            partial(self._open, (ranks or list(known.ranks))[0], note.file),
            self.desk.take,
            is_old=False,
            job=known.found.job,
            rank=note.rank,
        )
        self._following.turns.add(dump, f"files of job {known.found.job}")

    def _open(self, rank: RankProcess, file: str) -> int:
        return open_inside(self._proc.root_of(rank.pid), file)

    def _known(self, job: str | None) -> Job | None:
        """The job; the only one there is where nobody says which."""
        jobs = self._jobs()
        named = [one for one in jobs if job is None or one.found.job == job]
        return named[0] if len(named) == 1 else None

    def _job_of(self, written: Written) -> str | None:
        """A dump is among the last words of a rank: it may have ended by now."""
        return written.job or self._job_with(written.rank, written.owner, written.name)
