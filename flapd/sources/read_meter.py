"""ReadMeter: counts in the sampler how reading goes, until that is told; used from all threads."""

import threading
from collections.abc import Iterable, Mapping

from flapd.model.times import SECOND_NS
from flapd.sources.pace import Swept
from flapd.sources.read_health import ReadHealth


class ReadMeter:
    """Where lanes note what they did."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since_told = ReadHealth()

    def note(self, device: str, sweeps: Iterable[Swept], failures: Mapping[str, int]) -> None:
        """Sweeps of a device, and the reads in them that failed, by reason."""
        with self._lock:
            since_told = self._since_told
            for swept in sweeps:
                since_told.observe(device, swept.tier, swept.took_ns / SECOND_NS)
                if swept.late_ns is not None:
                    since_told.lateness.observe(swept.late_ns / SECOND_NS)
            for reason, times in failures.items():
                since_told.failed(device, reason, times)

    def take(self) -> ReadHealth:
        """What was noted since it was last taken."""
        with self._lock:
            taken, self._since_told = self._since_told, ReadHealth()
        return taken

    def give_back(self, taken: ReadHealth) -> None:
        """It could not be told."""
        with self._lock:
            taken.add(self._since_told)
            self._since_told = taken
