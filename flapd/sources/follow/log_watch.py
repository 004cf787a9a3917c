"""LogWatch: what logs tell, as observations, each with the job whose log it is."""

import threading
import time
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from flapd.model.fault import Fault
from flapd.model.finding import DumpWritten, Finding
from flapd.model.observation import FaultRead, Noted
from flapd.model.times import SECOND_NS
from flapd.sources.follow.held_back import HeldBack

_BEFORE_ITS_JOB_NS = 2 * SECOND_NS
"""A rank's start is known to a hundredth of a second, a line's time to a second."""

Tell = Callable[[FaultRead | Noted], None]


class LogWatch:
    """Used from all threads that read logs."""

    def __init__(
        self,
        tell: Tell,
        began_ns: Callable[[str], int | None],
        dump_written: Callable[[str | None, DumpWritten], None],
    ) -> None:
        """`began_ns`: when a job began here, unix time."""
        self._tell = tell
        self._began_ns = began_ns
        self._dump_written = dump_written
        self._lock = threading.Lock()
        self._held_back = HeldBack()

    @property
    def held_back(self) -> int:
        return self._held_back.count

    def found(self, job: str | None, findings: Iterable[Finding]) -> None:
        for finding in findings:
            now_ns = time.monotonic_ns()
            if not isinstance(finding, Fault):
                self._tell(Noted(job, finding, now_ns))
                if isinstance(finding, DumpWritten):
                    self._dump_written(job, finding)
            elif not self._is_of_earlier_job(job, finding) and not self._holds(finding):
                self._tell(FaultRead(replace(finding, job=job), now_ns))

    def _holds(self, fault: Fault) -> bool:
        with self._lock:
            return self._held_back.holds(fault)

    def _is_of_earlier_job(self, job: str | None, fault: Fault) -> bool:
        """In a log to which jobs append, of which nobody saw what was there before this one."""
        if job is None or fault.arrived_ns is not None or fault.time_ns is None:
            return False
        began_ns = self._began_ns(job)
        latest_ns = fault.time_ns + fault.clock_error_ns + _BEFORE_ITS_JOB_NS
        return began_ns is not None and latest_ns < began_ns
