"""Fleet: many nodes at once, each with its own clock; what all of them tell, and what is true."""

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from flapd.model.fleet import FLEET_VERSION, Heartbeat, NodeEvent
from simulators.cluster.beats import BEAT_SECONDS, heartbeat
from simulators.cluster.claims import claims_told
from simulators.cluster.clock import clock_of
from simulators.cluster.faults import faults_told
from simulators.cluster.jobs import job_told
from simulators.cluster.links import Down, downs_of
from simulators.cluster.names import node_name
from simulators.cluster.outages import maintenance_told, outage_told
from simulators.cluster.placed import JobRun, job_run
from simulators.cluster.spec import FleetSpec, Maintenance, Partition
from simulators.cluster.stalls import stalls_told
from simulators.cluster.told import Told
from simulators.cluster.truth import FleetTruth, truth_of
from simulators.job.spec import LinkLayer


class Arrival(NamedTuple):
    """A node's event reaches the stream, in seconds from the origin."""

    at: float
    event: NodeEvent


class Beat(NamedTuple):
    at: float
    beat: Heartbeat


class Fleet:
    """Works out on demand what each node tells: a fleet of 12,500 is never in memory at once."""

    def __init__(self, spec: FleetSpec) -> None:
        self.spec = spec
        self.clocks = {node: clock_of(spec, node) for node in range(spec.nodes)}
        downs = downs_of(spec)
        self.jobs = tuple(job_run(placed, downs) for placed in spec.jobs)
        self.truth: FleetTruth = truth_of(self.jobs, downs, self.clocks)
        self._downs: dict[int, list[Down]] = {}
        for down in downs:
            self._downs.setdefault(down.node, []).append(down)
        self._jobs: dict[int, list[JobRun]] = {}
        for one in self.jobs:
            for node in one.nodes:
                self._jobs.setdefault(node, []).append(one)

    @property
    def end(self) -> float:
        """When all jobs are over, or the simulation of them."""
        return max((one.run.truth.end for one in self.jobs), default=0.0)

    def events(self) -> Iterator[Arrival]:
        """Of all nodes, in the order in which they reach the stream."""
        nodes = (self.events_of(node) for node in range(self.spec.nodes))
        yield from heapq.merge(*nodes, key=lambda arrival: arrival.at)

    def events_of(self, node: int) -> list[Arrival]:
        """In the order of its journal."""
        told = [one for one in self._told_by(node) if one.at >= self.spec.watched_from_seconds]
        told.sort(key=lambda one: one.at)
        name, found, reached = node_name(node), [], 0.0
        for seq, (at, event) in enumerate(told, 1):
            reached = max(reached, self._reaches_at(node, at))
            told_of = NodeEvent(FLEET_VERSION, self.spec.cluster, name, seq, event)
            found.append(Arrival(reached, told_of))
        return found

    def beats(self, begin: float, end: float) -> Iterator[Beat]:
        """Those that are heard, in order of time; nodes are spread evenly over a period."""
        nodes = (self._beats_of(node, begin, end) for node in range(self.spec.nodes))
        yield from heapq.merge(*nodes, key=lambda one: one.at)

    def beat(self, node: int, at: float) -> Heartbeat:
        down = [one.port for one in self._downs.get(node, ()) if one.begin <= at < one.end]
        return heartbeat(
            self.spec.cluster,
            node,
            self.clocks[node],
            at,
            ports=self.spec.ports_per_node,
            down=down,
            jobs=tuple(one.job for one in self._jobs.get(node, ())),
        )

    def _beats_of(self, node: int, begin: float, end: float) -> Iterator[Beat]:
        at = begin + BEAT_SECONDS * node / self.spec.nodes
        while at < end:
            if self._reaches_at(node, at) == at:
                yield Beat(at, self.beat(node, at))
            at += BEAT_SECONDS

    def _told_by(self, node: int) -> Iterator[Told]:
        watched_from = self.spec.watched_from_seconds
        clock = self.clocks[node]
        for one in self._jobs.get(node, ()):
            yield from job_told(one, node, clock, watched_from)
            yield from stalls_told(one, node, clock, watched_from)
            yield from faults_told(one, node, self.clocks, watched_from)
            yield from claims_told(one, node, clock, watched_from)
        for down in self._downs.get(node, ()):
            yield from outage_told(down, self._layer(node), clock)
        for happening in self.spec.happenings:
            if isinstance(happening, Maintenance) and happening.node == node:
                yield from maintenance_told(happening, self.spec.ports_per_node, clock)

    def _layer(self, node: int) -> LinkLayer:
        jobs = self._jobs.get(node)
        return jobs[0].run.spec.link_layer if jobs else "InfiniBand"

    def _reaches_at(self, node: int, at: float) -> float:
        """Not while the node is cut off."""
        for one in self.spec.happenings:
            if isinstance(one, Partition) and node in one.nodes:
                until = one.at_seconds + one.for_seconds
                at = until if one.at_seconds <= at < until else at
        return at
