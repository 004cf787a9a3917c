"""Speaker: a process that prints, and the prefix that its libraries put before a message."""

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from flapd.model.times import SECOND_NS
from simulators.job.releases import Version
from simulators.job.spec import JobSpec

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_THREADS = {"main": 0, "proxy": 11, "async": 80}

_NCCL_LINES: tuple[tuple[Version, int, int], ...] = (
    ((2, 10), 74, 881),
    ((2, 12), 94, 1198),
    ((2, 14), 93, 1237),
    ((2, 17), 95, 1261),
    ((2, 18), 95, 1295),
    ((2, 19), 95, 1333),
    ((2, 20), 100, 1696),
    ((2, 21), 101, 1909),
    ((2, 22), 103, 1984),
    ((2, 23), 171, 2121),
    ((2, 24), 173, 2244),
    ((2, 26), 179, 2358),
    ((2, 27), 199, 2451),
    ((2, 28, 3), 212, 2470),
    ((2, 28, 7), 253, 2543),
    ((2, 29), 134, 651),
    ((2, 30), 179, 688),
)
"""Lines of the source at which the asynchronous event and the completion error are printed."""


class Clock(NamedTuple):
    """Unix time of the origin."""

    origin_unix_ns: int

    def unix_ns(self, at: float) -> int:
        return self.origin_unix_ns + round(at * SECOND_NS)

    def moment(self, at: float) -> datetime:
        return _EPOCH + timedelta(microseconds=self.unix_ns(at) // 1000)


class Speaker(NamedTuple):
    """A rank's process; its zone is UTC."""

    spec: JobSpec
    clock: Clock
    rank: int
    host: str
    pid: int

    @property
    def local_rank(self) -> int:
        return self.rank % self.spec.ranks_per_node

    def nccl_info(self, text: str, thread: str = "main") -> str:
        return f"{self._process(thread)} [{self.local_rank}] NCCL INFO {text}"

    def nccl_event(self, at: float, text: str) -> str:
        """From the thread for asynchronous events, which never selects a GPU."""
        return self._warning(at, "async", 0, "common.cc", 1, text)

    def nccl_completion(self, at: float, text: str) -> str:
        return self._warning(at, "proxy", self.local_rank, "p2p.cc", 2, text)

    def nccl_socket(self, at: float, text: str) -> str:
        head = f"{self._stamp(at)}{self._process('proxy')} [{self.local_rank}]"
        return f"\n{head} misc/socket.cc:58 NCCL WARN {text}"

    def torch(self, at: float, line: int, text: str, level: str = "E") -> str:
        """With the rank in the group, which is the whole job here."""
        release = self.spec.software.torch_version
        return f"{self._torch_header(at, line, level)}{self._group(release)} {text}"

    def _process(self, thread: str) -> str:
        return f"{self.host}:{self.pid}:{self.pid + _THREADS[thread]}"

    def _stamp(self, at: float) -> str:
        if self.spec.software.nccl_version < (2, 26):
            return ""
        return f"[{self.clock.moment(at):%Y-%m-%d %H:%M:%S}] "

    def _warning(
        self, at: float, thread: str, device: int, new_file: str, column: int, text: str
    ) -> str:
        release = self.spec.software.nccl_version
        line = next(row[column] for row in reversed(_NCCL_LINES) if row[0] <= release)
        file = f"net_ib/{new_file}" if release >= (2, 29) else "net_ib.cc"
        head = f"{self._stamp(at)}{self._process(thread)} [{device}]"
        return f"\n{head} transport/{file}:{line} NCCL WARN {text}"

    def _torch_header(self, at: float, line: int, level: str) -> str:
        release = self.spec.software.torch_version
        where = f"ProcessGroupNCCL.cpp:{line}] "
        if release < (2, 2):
            return f"[{level} {where}"
        if release < (2, 4):
            return f"[rank{self.rank}]:[{level} {where}"
        moment = self.clock.moment(at)
        fraction = f"{self.clock.unix_ns(at) % SECOND_NS:09d}"
        day = f"{moment.month}{moment.day:02d}"
        return f"[rank{self.rank}]:[{level}{day} {moment:%H:%M:%S}.{fraction} {where}"

    def _group(self, release: Version) -> str:
        if release < (2, 4):
            return f"[Rank {self.rank}]"
        if release < (2, 5):
            return f"[PG 0 (default_pg) Rank {self.rank}]"
        return f"[PG ID 0 PG GUID 0(default_pg) Rank {self.rank}]"
