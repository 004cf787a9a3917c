"""ReadHealth: how reading went, counted where it is done and added up in the agent."""

from bisect import bisect_left

import msgspec

LATENESS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)
READ_SECONDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.02, 0.1, 1.0)


class Histogram(msgspec.Struct, array_like=True):
    """Durations by size."""

    bounds: tuple[float, ...]
    """Upper bounds of the buckets, in seconds."""
    counts: list[int]
    """One a bucket, not cumulative; the last is what passed every bound."""
    sum_seconds: float = 0.0

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> "Histogram":
        return cls(bounds, [0] * (len(bounds) + 1))

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum_seconds += seconds

    def plus(self, other: "Histogram") -> "Histogram":
        """Both together; of the same bounds."""
        counts = [ours + theirs for ours, theirs in zip(self.counts, other.counts, strict=True)]
        return Histogram(self.bounds, counts, self.sum_seconds + other.sum_seconds)


class ReadHealth(msgspec.Struct, array_like=True, tag="reads"):
    """What happened in reading: in the sampler since it last told, in the agent since its start."""

    lateness: Histogram = msgspec.field(default_factory=lambda: Histogram.empty(LATENESS_SECONDS))
    """Of fast sweeps, behind the moment they were due."""
    read_seconds: dict[tuple[str, str], Histogram] = msgspec.field(default_factory=dict)
    """How long sweeps took, by device and tier."""
    errors: dict[tuple[str, str], int] = msgspec.field(default_factory=dict)
    """Reads that failed, by device and reason."""
    slowed: dict[str, int] = msgspec.field(default_factory=dict)
    """How many times longer than configured the intervals of each device are; 1 = they are not."""
    rings_missing: dict[str, int] = msgspec.field(default_factory=dict)
    """Rings of each device that could not be made: what they were for is not remembered."""

    def observe(self, device: str, tier: str, seconds: float) -> None:
        histogram = self.read_seconds.get((device, tier))
        if histogram is None:
            histogram = self.read_seconds[device, tier] = Histogram.empty(READ_SECONDS)
        histogram.observe(seconds)

    def failed(self, device: str, reason: str, times: int) -> None:
        self.errors[device, reason] = self.errors.get((device, reason), 0) + times

    def add(self, delta: "ReadHealth") -> None:
        """What was told since the last time; `slowed` and `rings_missing` are as it stands now.

        Nothing that stands here is changed in place: others may be looking at it.
        """
        self.lateness = self.lateness.plus(delta.lateness)
        empty = Histogram.empty(READ_SECONDS)
        self.read_seconds = self.read_seconds | {
            key: self.read_seconds.get(key, empty).plus(histogram)
            for key, histogram in delta.read_seconds.items()
        }
        self.errors = self.errors | {
            key: self.errors.get(key, 0) + times for key, times in delta.errors.items()
        }
        self.slowed = delta.slowed
        self.rings_missing = delta.rings_missing
