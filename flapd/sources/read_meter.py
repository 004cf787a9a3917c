"""ReadMeter: counts in the sampler how reading goes, until that is told; used from all threads."""

import threading
from collections.abc import Mapping

from flapd.model.times import SECOND_NS
from flapd.sources.read_health import ReadHealth


class ReadMeter:
    """Where lanes note what they did."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since_told = ReadHealth()

    def swept(
        self,
        device: str,
        tier: str,
        took_ns: int,
        late_ns: int | None,
        failures: Mapping[str, int],
    ) -> None:
        """One sweep, how late it began where that matters, and the reads in it that failed."""
        with self._lock:
            since_told = self._since_told
            since_told.observe(device, tier, took_ns / SECOND_NS)
            if late_ns is not None:
                since_told.lateness.observe(late_ns / SECOND_NS)
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
