"""Sight: since when, and up to when, the downs of each port of a fleet are known."""

from bisect import insort
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from flapd.core.fleet.nodes import Nodes
from flapd.core.incident.evidence import Watched
from flapd.model.event import Event, Outage, PortChange
from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.model.job import Job

_MOST_CHANGES = 64
_SEEN = {"found": True, "back": True, "gone": False, "forgotten": False}


class _Change(NamedTuple):
    revision: int
    at_ns: int
    is_seen: bool


class Sight:
    """By what nodes tell, unix times by their own clocks."""

    def __init__(self) -> None:
        self._since_ns: dict[str, int] = {}
        """By node: its first word. What came before, nobody may have watched."""
        self._until_ns: dict[str, int] = {}
        self._changes: dict[tuple[str, str], list[_Change]] = {}

    def take(self, event: Event) -> None:
        at_ns = _told_ns(event)
        if at_ns is None:
            return
        node = event.node
        self._since_ns[node] = min(at_ns, self._since_ns.get(node, at_ns))
        self._until_ns[node] = max(at_ns, self._until_ns.get(node, at_ns))
        if isinstance(event, PortChange):
            self._take_change(event, at_ns)

    def _take_change(self, change: PortChange, at_ns: int) -> None:
        is_seen = _SEEN.get(change.change)
        if change.change == "witness":
            is_seen = change.note != "unreadable"
        if is_seen is None:
            return
        told = _Change(change.revision, at_ns, is_seen)
        changes = self._changes.setdefault((change.node, change.key), [])
        if told not in changes:
            insort(changes, told)
            del changes[:-_MOST_CHANGES]

    def watched(
        self, node: str, keys: Iterable[str], nodes: Nodes
    ) -> Iterator[tuple[str, Watched]]:
        """Of these ports of a node, by the clock of who correlates; without those never seen."""
        whole = self._of_node(node, nodes)
        if whole is None:
            return
        for key in keys:
            turned = self._turned(node, key)
            is_said = turned is not None and not turned.is_seen
            if turned is not None and (is_said or nodes.is_readable(node, key)):
                yield key, _turned_at(whole, turned, turned.at_ns - nodes.shift_ns(node))
            elif nodes.is_readable(node, key):
                yield key, whole

    def _of_node(self, node: str, nodes: Nodes) -> Watched | None:
        beat, since_ns = nodes.last(node), self._since_ns.get(node)
        until_ns = self._until_ns.get(node)
        if beat is not None:
            since_ns = beat.sent_unix_ns if since_ns is None else since_ns
            until_ns = max(beat.sent_unix_ns, until_ns or 0)
        if since_ns is None or until_ns is None:
            return None
        shift_ns = nodes.shift_ns(node)
        return Watched(since_ns - shift_ns, until_ns - shift_ns)

    def _turned(self, node: str, key: str) -> _Change | None:
        """When it was last seen after it was not, or the other way round."""
        turned: _Change | None = None
        for change in self._changes.get((node, key), ()):
            if turned is None or change.is_seen is not turned.is_seen:
                turned = change
        return turned


def _turned_at(whole: Watched, turned: _Change, at_ns: int) -> Watched:
    if turned.is_seen:
        return Watched(max(whole.since_ns, at_ns), whole.until_ns)
    return Watched(whole.since_ns, min(whole.until_ns, at_ns))


def _told_ns(event: Event) -> int | None:
    """A moment at which the agent watched, as near to the telling as is known."""
    if isinstance(event, Outage):
        return event.recorded_ns + event.down.wall_offset_ns
    if isinstance(event, PortChange):
        return event.recorded_ns + event.wall_offset_ns
    if isinstance(event, Fault):
        return event.arrived_ns
    if isinstance(event, Job):
        return event.stalls_seen_since_unix_ns
    if isinstance(event, Incident):
        return event.end_unix_ns or event.begin_unix_ns
    return event.end_unix_ns or event.begin_unix_ns
