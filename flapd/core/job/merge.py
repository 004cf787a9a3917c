"""Merging: messages that say the same become one fault, in whatever order they arrived.

Every local rank has all HCAs open and prints each event of a port. PyTorch prints the text of
one exception up to three times, and in it the last warning of NCCL.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from msgspec.structs import replace

from flapd.model.fault import Fault, Place
from flapd.model.times import SECOND_NS

_EVENT_WINDOW_NS = 2 * SECOND_NS
_PROCESS_WINDOW_NS = 120 * SECOND_NS
"""From the first to the last print of one exception: PyTorch 2.8 waits 60 s in between."""

_FILLED = tuple(
    name
    for name in Fault.__struct_fields__
    if name not in ("id", "revision", "primary", "consequence", "repeats", "source", "text")
)


def merged(faults: Iterable[Fault]) -> list[Fault]:
    """One fault for all that say the same, in order of time; a function of the set.

    Takes faults as they were read, not such as are merged already. The earliest stands for the
    others, with what only they know filled in.
    """
    return [as_one(cluster) for cluster in clusters(faults)]


def clusters(faults: Iterable[Fault]) -> list[list[Fault]]:
    """Those that say the same together, each in order of time, the earliest clusters first."""
    groups: dict[Hashable, list[list[Fault]]] = {}
    for fault in sorted(_once_each(faults), key=_order):
        alike = groups.setdefault(_key(fault), [])
        takes = _takes_event if _is_of_port(fault) else _takes
        found = next((one for one in alike if takes(one, fault)), None)
        if found is None:
            alike.append([fault])
        else:
            found.append(fault)
    found_all = (cluster for alike in groups.values() for cluster in alike)
    return sorted(found_all, key=lambda cluster: _order(cluster[0]))


def _once_each(faults: Iterable[Fault]) -> Iterable[Fault]:
    """Many readers of one file tell the same fault."""
    found: dict[str, Fault] = {}
    for fault in faults:
        other = found.get(fault.id)
        if other is None or _reading(fault) < _reading(other):
            found[fault.id] = fault
    return found.values()


def _order(fault: Fault) -> tuple[bool, int, str]:
    return fault.time_ns is None, fault.time_ns or 0, fault.id


def _reading(fault: Fault) -> tuple[bool, int, str, str, int]:
    arrived_ns, place = fault.arrived_ns, fault.source or Place("", 0)
    return arrived_ns is None, arrived_ns or 0, fault.node, place.file, place.offset


def _is_of_port(fault: Fault) -> bool:
    return fault.kind in ("port_event", "fatal_event")


def _key(fault: Fault) -> Hashable:
    if _is_of_port(fault):
        return fault.kind, fault.host, fault.hca, fault.port, fault.event
    if fault.kind == "counter":
        return fault.kind, fault.form, fault.hca, fault.port
    if fault.kind == "transport_error" and fault.peer is not None:
        # An address out of band is that of one connection of one process.
        return fault.kind, fault.status, fault.peer
    who = (fault.rank, None) if fault.rank is not None else (fault.host, fault.pid)
    if fault.kind == "watchdog_timeout" and fault.ran_seconds is not None:
        return fault.kind, who, fault.group_rank, fault.seq, fault.op, fault.ran_seconds
    what = (fault.process_group, fault.seq, fault.event, fault.status, fault.peer)
    return fault.kind, fault.form, who, what


def _takes(cluster: list[Fault], fault: Fault) -> bool:
    return _within(cluster, fault, _PROCESS_WINDOW_NS)


def _takes_event(cluster: list[Fault], fault: Fault) -> bool:
    """A process that prints an event again tells of another."""
    known = fault.pid is not None and any(one.pid == fault.pid for one in cluster)
    return not known and _within(cluster, fault, _EVENT_WINDOW_NS)


def _within(cluster: list[Fault], fault: Fault, window_ns: int) -> bool:
    first_ns = cluster[0].time_ns
    if first_ns is None or fault.time_ns is None:
        return first_ns is fault.time_ns
    return fault.time_ns - first_ns <= window_ns


def as_one(cluster: list[Fault]) -> Fault:
    """The first of a cluster, with what only the others know."""
    first = cluster[0]
    missing = [name for name in _FILLED if getattr(first, name) is None]
    filled = {name: _first_known(cluster, name) for name in missing}
    return replace(first, repeats=sum(one.repeats for one in cluster), **filled)


def _first_known(cluster: list[Fault], name: str) -> Any:
    values = (getattr(one, name) for one in cluster)
    return next((value for value in values if value is not None), None)
