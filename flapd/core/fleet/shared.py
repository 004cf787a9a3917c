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


_Place = tuple[int, str]
"""When an outage began, and its id."""


class _Bunch:
    """Downs that are near enough to each other, in order of time."""

    def __init__(self, outages: Sequence[Outage]) -> None:
        self.outages = outages
        self.begin_ns, self.last_ns = begin_ns(outages[0]), begin_ns(outages[-1])
        self.nodes = len({one.node for one in outages})
        self._causes: Sequence[Shared] | None = None

    def causes(self, topology: Topology) -> Sequence[Shared]:
        """Worked out once."""
        if self._causes is None:
            self._causes = [*_causes_of(self.outages, topology)]
        return self._causes


class Downs:
    """All downs of a fleet by what may be shared of them, in order of time."""

    def __init__(self) -> None:
        self._outages: dict[str, Outage] = {}
        self._order: list[_Place] = []
        self._starts: list[_Place] = []
        """Where each bunch begins, however few are in it."""
        self._bunches: dict[_Place, _Bunch] = {}
        """By where they begin and in that order, those of enough downs."""
        self._changed_at: _Place | None = None
        """The first place that is another since they were made."""

    def put(self, outage: Outage) -> None:
        """By the clock of who correlates; in the place of what it was before."""
        self.drop(outage.id)
        width_ns = outage.down.latest_ns - outage.down.earliest_ns
        if outage.cause in _OF_THE_FABRIC and width_ns <= _WIDEST_NS:
            self._outages[outage.id] = outage
            place = begin_ns(outage), outage.id
            insort(self._order, place)
            self._change(place)

    def drop(self, name: str) -> None:
        outage = self._outages.pop(name, None)
        if outage is not None:
            place = begin_ns(outage), name
            del self._order[bisect_left(self._order, place)]
            self._change(place)

    def _change(self, place: _Place) -> None:
        self._changed_at = place if self._changed_at is None else min(self._changed_at, place)

    def shared(self, topology: Topology) -> list[Shared]:
        """In order of time; a function of the set. No outage is in two."""
        if self._changed_at is not None:
            self._bunch_from(self._changed_at)
            self._changed_at = None
        unusual = (one for place, one in self._bunches.items() if self._is_unusual(place, one))
        return [shared for bunch in unusual for shared in bunch.causes(topology)]

    def _bunch_from(self, changed_at: _Place) -> None:
        """Of what begins earlier the last may now end elsewhere; the others stay."""
        stays = max(0, bisect_left(self._starts, changed_at) - 1)
        first = bisect_left(self._order, min([changed_at, *self._starts[stays : stays + 1]]))
        before = {start: self._bunches.pop(start, None) for start in self._starts[stays:]}
        del self._starts[stays:]
        for begin, end in self._bounds(first):
            start = self._order[begin]
            self._starts.append(start)
            if end - begin >= LEAST_NODES:
                outages = [self._outages[name] for _, name in self._order[begin:end]]
                known = before.get(start)
                is_same = known is not None and known.outages == outages
                self._bunches[start] = known if known and is_same else _Bunch(outages)

    def _bounds(self, first: int) -> Iterator[tuple[int, int]]:
        """Places of the first of each bunch, and behind its last, from one that begins there."""
        order = self._order
        for place in range(first + 1, len(order) + 1):
            if place < len(order):
                at_ns = order[place][0]
                near = at_ns - order[place - 1][0] <= _NEXT_WITHIN_NS
                if near and at_ns - order[first][0] <= _LONGEST_NS:
                    continue
            yield first, place
            first = place

    def _is_unusual(self, start: _Place, bunch: _Bunch) -> bool:
        """Where ports flap all the time, some do so together for nothing."""
        if bunch.nodes < LEAST_NODES:
            return False
        earlier = bisect_left(self._order, (bunch.begin_ns - _BEFORE_NS, ""))
        before = bisect_left(self._order, start) - earlier
        expected = before * max(bunch.last_ns - bunch.begin_ns, _NEXT_WITHIN_NS) / _BEFORE_NS
        return bunch.nodes >= LEAST_NODES + _MORE_THAN_USUAL * expected


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
