"""JobRecord: what is asked of one job seldom: its files, its libraries, its queue pairs."""

import time
from collections.abc import Iterable
from contextlib import suppress

from flapd.core.job.policy import conf_files_of
from flapd.model.job import ReadFile
from flapd.model.times import SECOND_NS
from flapd.sources.files import reason_of
from flapd.sources.jobs.attempts import Attempts
from flapd.sources.jobs.inside import read_inside
from flapd.sources.jobs.libraries import nccl_of, torch_in, torch_version_file
from flapd.sources.jobs.procfs import ProcFs
from flapd.sources.jobs.queue_pairs import QueuePairs
from flapd.sources.jobs.rank_process import RankProcess

LONGEST_CONF_BYTES = 8 * 1024
_LONGEST_VERSION_BYTES = 8 * 1024
_LIBRARY_LOOKS = 6
"""They are loaded while the program starts."""
ASK_AFTER_NS = (20 * SECOND_NS, 60 * SECOND_NS, 300 * SECOND_NS)
"""Queue pairs are made with the first collectives."""


class JobRecord:
    """Used from one thread at a time."""

    def __init__(self, proc: ProcFs, attempts: Attempts) -> None:
        self.conf_files: tuple[ReadFile, ...] = ()
        self.torch: str | None = None
        self.nccl: str | None = None
        self.ports: set[str] = set()
        self.in_error: dict[str, int] = {}
        self.why_no_ports = "the ports it uses: not asked yet"
        self._proc = proc
        self._attempts = attempts
        self._lead: tuple[int, int] | None = None
        self._library_looks = 0
        self._found_ns = time.monotonic_ns()
        self._asked = 0

    def look(self, lead: RankProcess) -> None:
        """`lead` is its lowest rank; OSError where it has ended or cannot be looked into."""
        identity = lead.pid, lead.started_unix_ns
        if identity != self._lead:
            self._lead, self._library_looks = identity, 0
            self.conf_files = tuple(self._read_conf_files(lead))
        if self._library_looks < _LIBRARY_LOOKS and None in (self.torch, self.nccl):
            self._library_looks += 1
            self._read_libraries(lead)

    @property
    def wants_queue_pairs(self) -> bool:
        """At a few moments, until it has some."""
        if self.ports or self._asked >= len(ASK_AFTER_NS):
            return False
        return time.monotonic_ns() - self._found_ns >= ASK_AFTER_NS[self._asked]

    def asked(self) -> None:
        self._asked += 1

    def take(self, pairs: QueuePairs, ranks: Iterable[RankProcess]) -> None:
        """Those of its ranks; the kernel names the thread that opened the device."""
        pids = {rank.pid for rank in ranks}
        threads = {thread for thread in pairs.all if self._proc.process_of_thread(thread) in pids}
        used = {port for thread in threads for port in pairs.all[thread]}
        self.ports |= used
        self.in_error = {}
        for thread in threads:
            for port, count in pairs.in_error.get(thread, {}).items():
                self.in_error[port] = self.in_error.get(port, 0) + count
        self.why_no_ports = "; ".join(pairs.blind_to) or "the ports it uses: no queue pairs yet"

    def _read_conf_files(self, lead: RankProcess) -> list[ReadFile]:
        paths = conf_files_of(lead.environment or {}, lead.home)
        return [self._read_conf_file(lead.pid, path) for path in paths]

    def _read_conf_file(self, pid: int, path: str) -> ReadFile:
        try:
            with self._attempts.at(pid):
                content = read_inside(self._proc.root_of(pid), path, LONGEST_CONF_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return ReadFile(path, "")
        except OSError:
            return ReadFile(path, None)
        return ReadFile(path, None if content is None else content.decode("utf-8", "replace"))

    def _read_libraries(self, lead: RankProcess) -> None:
        with self._attempts.at(lead.pid):
            libraries = self._proc.libraries(lead.pid)
        self.nccl = nccl_of(libraries)
        version_file = torch_version_file(libraries)
        if version_file is None:
            return
        with suppress(OSError), self._attempts.at(lead.pid):
            root = self._proc.root_of(lead.pid)
            content = read_inside(root, version_file, _LONGEST_VERSION_BYTES)
            self.torch = torch_in(content or b"")


def why_blind(error: OSError) -> str:
    return error.strerror or reason_of(error)
