"""Aligned: events with their times by one clock, that of who correlates them."""

from collections.abc import Sequence

from msgspec.structs import replace

from flapd.core.fleet.nodes import Nodes
from flapd.core.fleet.shelf import Shelf
from flapd.core.fleet.topology import short_name
from flapd.core.incident.evidence import begin_ns
from flapd.model.event import Outage
from flapd.model.fault import Fault
from flapd.model.job import Job
from flapd.model.stall import Stall
from flapd.model.times import Edge


class AlignedOutages:
    """Those of each node, dated once until something about them changes."""

    def __init__(self, outages: Shelf[Outage], nodes: Nodes) -> None:
        self._outages, self._nodes = outages, nodes
        self._at: dict[str, list[Outage]] = {}

    def at(self, node: str) -> Sequence[Outage]:
        """In order of time."""
        known = self._at.get(node)
        if known is None:
            found = [outage_by(self._nodes, one) for one in self._outages.at(node)]
            known = self._at[node] = sorted(found, key=lambda one: (begin_ns(one), one.id))
        return known

    def renew(self, node: str) -> None:
        """After one came or went there, or its clock is thought to be another."""
        self._at.pop(node, None)

    def renew_all(self) -> None:
        self._at.clear()


def outage_by(nodes: Nodes, outage: Outage) -> Outage:
    down = _edge(nodes, outage.node, outage.down)
    up = None if outage.up is None else _edge(nodes, outage.node, outage.up)
    if down is outage.down and up is outage.up:
        return outage
    return replace(outage, down=down, up=up)


def _edge(nodes: Nodes, node: str, edge: Edge) -> Edge:
    shift_ns = nodes.shift_ns(node, edge.wall_offset_ns)
    return replace(edge, wall_offset_ns=edge.wall_offset_ns - shift_ns) if shift_ns else edge


def stall_by(nodes: Nodes, stall: Stall) -> Stall:
    shift_ns = nodes.shift_ns(stall.node, stall.wall_offset_ns)
    return replace(stall, wall_offset_ns=stall.wall_offset_ns - shift_ns) if shift_ns else stall


def fault_by(nodes: Nodes, fault: Fault) -> Fault:
    shift_ns = nodes.shift_ns(_dated_by(nodes, fault))
    if not shift_ns or fault.time_ns is None:
        return fault
    return replace(fault, time_ns=fault.time_ns - shift_ns)


def _dated_by(nodes: Nodes, fault: Fault) -> str:
    """Who writes a line dates it, whoever reads it."""
    if fault.logged_ns is None or fault.host is None:
        return fault.node
    return nodes.named(short_name(fault.host)) or fault.node


def job_by(nodes: Nodes, job: Job) -> Job:
    shift_ns = nodes.shift_ns(job.node)
    if not shift_ns:
        return job
    names = ("since_unix_ns", "until_unix_ns", "stalls_seen_since_unix_ns", "traffic_since_unix_ns")
    known = {name: getattr(job, name) for name in names}
    unseen = tuple((begin - shift_ns, end - shift_ns) for begin, end in job.traffic_unseen_unix_ns)
    moved = {name: ns - shift_ns for name, ns in known.items() if ns is not None}
    return replace(job, traffic_unseen_unix_ns=unseen, **moved)
