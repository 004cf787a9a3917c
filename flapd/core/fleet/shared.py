"""Shared: many ports of many nodes that went down at once have one cause, not one each."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from flapd.core.fleet.topology import Topology
from flapd.core.incident.evidence import begin_ns
from flapd.model.event import Cause, Outage
from flapd.model.times import SECOND_NS

LEAST_NODES = 3
"""Behind one switch, where a file names it and a good part of its ports went."""
LEAST_NODES_ANYWHERE = 6
_PART_OF_SWITCH = 1 / 3
"""Of the ports that the file names; some are not used."""
_NEXT_WITHIN_NS = 3 * SECOND_NS // 2
"""From one down to the next: clocks of nodes differ, and a switch lets go of its ports in turn."""
_LONGEST_NS = 5 * SECOND_NS
"""From the first down to the last."""
_BEFORE_NS = 3600 * SECOND_NS
_MORE_THAN_USUAL = 5.0
_WIDEST_NS = 5 * SECOND_NS
"""A down that is known less sharply stands beside any other."""
_OF_THE_FABRIC: frozenset[Cause] = frozenset({"link", "subnet", "unknown"})
"""The others a node did to itself."""
_NEARLY_ALL = 0.9


class Shared(msgspec.Struct, frozen=True):
    """What many ports have in common that went down together."""

    outages: tuple[Outage, ...]
    """In order of time."""
    switch: str | None
    """At the other end of all their links; None: there is no such, or nobody knows."""
    key: str
    nodes: int
    ports: int

    @property
    def within_seconds(self) -> float:
        return (begin_ns(self.outages[-1]) - begin_ns(self.outages[0])) / SECOND_NS

    @property
    def words(self) -> str:
        within = f"{self.ports:,} ports of {self.nodes:,} nodes within {self.within_seconds:.1f} s"
        return f"{self.switch or 'a shared cause'}: {within}"


class Downs:
    """All downs of a fleet by what may be shared of them, in order of time."""

    def __init__(self) -> None:
        self._outages: dict[str, Outage] = {}
        self._order: list[tuple[int, str]] = []

    def put(self, outage: Outage) -> None:
        """By the clock of who correlates; in the place of what it was before."""
        self.drop(outage.id)
        width_ns = outage.down.latest_ns - outage.down.earliest_ns
        if outage.cause in _OF_THE_FABRIC and width_ns <= _WIDEST_NS:
            self._outages[outage.id] = outage
            insort(self._order, (begin_ns(outage), outage.id))

    def drop(self, name: str) -> None:
        outage = self._outages.pop(name, None)
        if outage is not None:
            del self._order[bisect_left(self._order, (begin_ns(outage), name))]

    def shared(self, topology: Topology) -> list[Shared]:
        """In order of time; a function of the set. No outage is in two."""
        return [
            shared
            for first, end in self._bunches()
            if self._is_unusual(first, end)
            for shared in _causes_of(self._between(first, end), topology)
        ]

    def _between(self, first: int, end: int) -> list[Outage]:
        return [self._outages[name] for _, name in self._order[first:end]]

    def _bunches(self) -> Iterator[tuple[int, int]]:
        """Places of the first, and behind the last, where there are enough for one."""
        order, first = self._order, 0
        for place in range(1, len(order) + 1):
            if place < len(order):
                at_ns = order[place][0]
                near = at_ns - order[place - 1][0] <= _NEXT_WITHIN_NS
                if near and at_ns - order[first][0] <= _LONGEST_NS:
                    continue
            if place - first >= LEAST_NODES:
                yield first, place
            first = place

    def _is_unusual(self, first: int, end: int) -> bool:
        """Where ports flap all the time, some do so together for nothing."""
        begin, last = self._order[first][0], self._order[end - 1][0]
        before = first - bisect_left(self._order, (begin - _BEFORE_NS, ""))
        expected = before * max(last - begin, _NEXT_WITHIN_NS) / _BEFORE_NS
        nodes = {self._outages[name].node for _, name in self._order[first:end]}
        return len(nodes) >= LEAST_NODES + _MORE_THAN_USUAL * expected


def _causes_of(bunch: Sequence[Outage], topology: Topology) -> Iterator[Shared]:
    """The switch that nearly all are of, without the others; or all of them."""
    switches = {one.id: _switch(one, topology) for one in bunch}
    switch, count = Counter(switches.values()).most_common(1)[0]
    if switch is not None and count >= _NEARLY_ALL * len(bunch):
        found = _shared([one for one in bunch if switches[one.id] == switch], switch)
        is_part = found.ports >= _PART_OF_SWITCH * topology.ports_of(switch)
    else:
        found, is_part = _shared(bunch, None), False
    if found.nodes >= (LEAST_NODES if is_part else LEAST_NODES_ANYWHERE):
        yield found


def _shared(outages: Sequence[Outage], switch: str | None) -> Shared:
    return Shared(
        outages=tuple(outages),
        switch=switch,
        key=min(one.id for one in outages),
        nodes=len({one.node for one in outages}),
        ports=len({(one.node, one.key) for one in outages}),
    )


def _switch(outage: Outage, topology: Topology) -> str | None:
    peer = topology.peer_of(outage.node, outage.port, outage.guid)
    return None if peer is None else peer.switch
