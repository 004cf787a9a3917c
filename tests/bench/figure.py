"""Figure: one thing measured, beside its budget and the floor that nothing could go below."""

from collections.abc import Callable, Sequence

import msgspec


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything: what counts is FULL, TINY shows that a benchmark works."""

    ports: int
    seconds: float
    """Of whatever is watched as it runs."""
    sweeps: int
    outages: int
    samples: int
    flaps_a_port: int
    requests: int
    starts: int
    nodes: int
    """Of a fleet."""
    may_download: bool
    """What to compare with, where it is not installed."""


FULL = Scale(
    ports=16,
    seconds=30.0,
    sweeps=20_000,
    outages=1_000_000,
    samples=500_000,
    flaps_a_port=20,
    requests=200,
    starts=7,
    nodes=12_500,
    may_download=True,
)
TINY = Scale(
    ports=2,
    seconds=1.5,
    sweeps=50,
    outages=500,
    samples=2_000,
    flaps_a_port=1,
    requests=5,
    starts=1,
    nodes=64,
    may_download=False,
)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """`value` is None where it could not be measured here; `note` says why."""

    what: str
    unit: str
    value: float | None
    budget: float | None
    """None: there is none, it is shown beside one that has."""
    at_least: bool = False
    """More is better: the budget is the least."""
    floor: str = ""
    note: str = ""

    @property
    def holds(self) -> bool | None:
        if self.value is None or self.budget is None:
            return None
        return self.value >= self.budget if self.at_least else self.value <= self.budget


Bench = Callable[[Scale], list[Figure]]


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all does not pass; `values` are not empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
