"""Clock: what a node's two clocks show at a moment; moments are seconds from the fleet's origin."""

import random
from typing import NamedTuple

from flapd.model.times import SECOND_NS, Edge
from simulators.cluster.spec import FleetSpec

_LONGEST_UP_SECONDS = 30 * 86400.0


class NodeClock(NamedTuple):
    """Both clocks at the origin."""

    monotonic_ns: int
    unix_ns: int
    skew_ns: int
    """By which the second is ahead."""

    @property
    def wall_offset_ns(self) -> int:
        return self.unix_ns - self.monotonic_ns

    def ns(self, at: float) -> int:
        return self.monotonic_ns + round(at * SECOND_NS)

    def unix(self, at: float) -> int:
        return self.unix_ns + round(at * SECOND_NS)

    def edge(self, earliest: float, latest: float) -> Edge:
        return Edge(self.ns(earliest), self.ns(latest), self.wall_offset_ns)


def clock_of(spec: FleetSpec, node: int) -> NodeClock:
    """Nodes have been up for some hours to a month."""
    rng = random.Random(f"{spec.seed} clock of {node}")
    up_ns = round(rng.uniform(3600.0, _LONGEST_UP_SECONDS) * SECOND_NS)
    most_ns = round(spec.largest_skew_seconds * SECOND_NS)
    skew_ns = rng.randint(-most_ns, most_ns)
    return NodeClock(up_ns, spec.origin_unix_ns + skew_ns, skew_ns)
