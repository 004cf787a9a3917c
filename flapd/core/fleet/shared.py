"""Shared: many ports of many nodes that went down at once have one cause, not one each."""

import math
from bisect import bisect_left, insort
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
_HOUR_NS = 3600 * SECOND_NS
_SHORTEST_NS = 60 * SECOND_NS
"""In which it is not known how often ports flap."""
_MOST_BY_CHANCE = 1e-3
"""An hour: what chance alone brings together more often has no cause."""
_WIDEST_NS = 5 * SECOND_NS
"""A down that is known less sharply stands beside any other."""
_OF_THE_FABRIC: frozenset[Cause] = frozenset({"link", "subnet", "unknown"})
"""The others a node did to itself."""


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
        self.nodes = _nodes(outages)
        self._causes: Sequence[tuple[Shared, float]] | None = None

    def causes(self, topology: Topology) -> Sequence[tuple[Shared, float]]:
        """Each with the share that it concerns of all ports of the fleet.

        Worked out once: another file of cables changes nothing that was told.
        """
        if self._causes is None:
            found = _causes_of(self.outages, topology)
            self._causes = [(one, topology.share_of(one.switch)) for one in found]
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
        return [
            shared
            for place, bunch in self._bunches.items()
            if bunch.nodes >= LEAST_NODES
            for shared, share in bunch.causes(topology)
            if self._is_unusual(place, bunch, share, shared.nodes)
        ]

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

    def _is_unusual(self, start: _Place, bunch: _Bunch, share: float, nodes: int) -> bool:
        """Where ports flap all the time, some do so together for nothing.

        `share` is that of the ports which are concerned in all ports of the fleet.
        """
        since_ns = max(bunch.begin_ns - _HOUR_NS, self._order[0][0])
        before = bisect_left(self._order, start) - bisect_left(self._order, (since_ns, ""))
        an_hour = share * before * _HOUR_NS / max(bunch.begin_ns - since_ns, _SHORTEST_NS)
        width_ns = max(bunch.last_ns - bunch.begin_ns, _NEXT_WITHIN_NS)
        others = at_least(nodes - 1, an_hour * width_ns / _HOUR_NS)
        return an_hour * others <= _MOST_BY_CHANCE


def at_least(count: int, expected: float) -> float:
    """The chance of so many or more where so many are expected (Poisson)."""
    left, exactly = 1.0, math.exp(-expected)
    for number in range(count):
        left -= exactly
        exactly *= expected / (number + 1)
    return max(0.0, left)


def _causes_of(bunch: Sequence[Outage], topology: Topology) -> Iterator[Shared]:
    """A switch without what went beside it; where that is several, or much went beside, all."""
    by_switch: dict[str | None, list[Outage]] = {}
    for one in bunch:
        by_switch.setdefault(_switch(one, topology), []).append(one)
    died = {name for name, group in by_switch.items() if _is_switch(name, group, topology)}
    beside = [one for name in by_switch.keys() - died for one in by_switch[name]]
    if died and _nodes(beside) < LEAST_NODES_ANYWHERE:
        of_died = [one for one in bunch if _switch(one, topology) in died]
        yield _shared(of_died, died.pop() if len(died) == 1 else None)
    elif _nodes(bunch) >= LEAST_NODES_ANYWHERE:
        yield _shared(bunch, None)


def _is_switch(name: str | None, outages: Sequence[Outage], topology: Topology) -> bool:
    """So much of it went that it did, and not each cable."""
    if name is None:
        return False
    is_part = _ports(outages) >= _PART_OF_SWITCH * topology.ports_of(name)
    return _nodes(outages) >= (LEAST_NODES if is_part else LEAST_NODES_ANYWHERE)


def _shared(outages: Sequence[Outage], switch: str | None) -> Shared:
    return Shared(
        outages=tuple(outages),
        switch=switch,
        key=min(one.id for one in outages),
        nodes=_nodes(outages),
        ports=_ports(outages),
    )


def _nodes(outages: Sequence[Outage]) -> int:
    return len({one.node for one in outages})


def _ports(outages: Sequence[Outage]) -> int:
    return len({(one.node, one.key) for one in outages})


def _switch(outage: Outage, topology: Topology) -> str | None:
    peer = topology.peer_of(outage.node, outage.port, outage.guid)
    return None if peer is None else peer.switch
