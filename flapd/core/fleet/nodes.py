"""Nodes: who is heard of, how far each clock is off, and who has fallen silent."""

from bisect import insort
from collections import deque
from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from flapd.core.fleet.topology import short_name
from flapd.core.incident.terms import ETHERNET
from flapd.model.fleet import ClockState, Heartbeat
from flapd.model.times import SECOND_NS

SILENT_AFTER_NS = 90 * SECOND_NS
"""Three heartbeats that did not come."""
_READINGS = 20
_STEP_NS = SECOND_NS // 10
"""By which a wall clock moves against the monotonic one only if it is set."""
_SLACK_SECONDS = {1: 1.0, 2: 0.5}
"""How long the quickest of so few heartbeats may have been on its way."""
_LEAST_SLACK_SECONDS = 0.25
_LONGEST_STEP_NS = 60 * SECOND_NS
_GRID_NS = SECOND_NS // 2
"""What is less is within what correlation bears, and differs from hub to hub."""

Health = Literal["healthy", "unhealthy", "unknown"]


class ClockEstimate(msgspec.Struct, frozen=True):
    """How far a node's wall clock is ahead of the hub's, in seconds; behind is negative."""

    low: float
    """A heartbeat cannot be received before it is sent."""
    likely: float
    high: float


class NodeView(msgspec.Struct, frozen=True):
    """What may be shown of a node."""

    node: str
    health: Health
    """`unknown` where nothing was heard for SILENT_AFTER_NS, whatever it said before."""
    reasons: tuple[str, ...]
    """Why it is not healthy, a sentence each."""
    seen_unix_ns: int | None
    """By the hub's clock, the last heartbeat; None: none came since the hub began."""
    clock: ClockEstimate | None
    heartbeat: Heartbeat | None


class _Clock(NamedTuple):
    shift_ns: int
    """By which it is ahead."""
    wall_offset_ns: int
    """From monotonic to wall time."""


class _Heard:
    """The last heartbeat of a node, and what all since its clock was set tell of that."""

    def __init__(self) -> None:
        self.beat: Heartbeat | None = None
        self.seen_ns: int | None = None
        self.readable: frozenset[str] = frozenset()
        self.ethernet: frozenset[str] = frozenset()
        self.view: NodeView | None = None
        """As it is shown until the next heartbeat, or until that is missed."""
        self._ahead_ns: deque[int] = deque(maxlen=_READINGS)

    def take(self, beat: Heartbeat, received_ns: int) -> None:
        if self.beat is not None and _was_set(self.beat, beat):
            self._ahead_ns.clear()
        self.beat, self.seen_ns, self.view = beat, received_ns, None
        self.readable = frozenset(port.key for port in beat.ports if port.readable)
        self.ethernet = frozenset(one.key for one in beat.ports if one.link_layer == ETHERNET)
        self._ahead_ns.append(beat.sent_unix_ns - received_ns)

    def clock(self) -> ClockEstimate | None:
        if not self._ahead_ns or self.beat is None:
            return None
        low = max(self._ahead_ns) / SECOND_NS
        high = low + _SLACK_SECONDS.get(len(self._ahead_ns), _LEAST_SLACK_SECONDS)
        return ClockEstimate(low, _likely(low, high, self.beat.clock), high)


class Nodes:
    """Keeps the last heartbeat of each node, and what many of them tell of its clock."""

    def __init__(self) -> None:
        self._heard: dict[str, _Heard] = {}
        self._names: list[str] = []
        """In their order."""
        self._clocks: dict[str, _Clock] = {}
        """By node, as of its last heartbeat."""
        self._by_short_name: dict[str, str | None] = {}
        """None: several have it."""

    def note(self, node: str) -> None:
        """It told an event: then there is such a node, alive or not."""
        if node not in self._heard:
            self._heard[node] = _Heard()
            insort(self._names, node)
            short = short_name(node)
            self._by_short_name[short] = None if short in self._by_short_name else node

    def beat(self, beat: Heartbeat, received_unix_ns: int) -> bool:
        """True where its events have to be dated anew."""
        self.note(beat.node)
        heard = self._heard[beat.node]
        heard.take(beat, received_unix_ns)
        clock = heard.clock()
        shift_ns = 0 if clock is None else _on_grid(clock.likely * SECOND_NS)
        before = self._clocks.get(beat.node, _Clock(0, 0))
        now = _Clock(shift_ns, beat.sent_unix_ns - beat.sent_monotonic_ns)
        self._clocks[beat.node] = now
        return shift_ns != before.shift_ns or abs(now.wall_offset_ns - before.wall_offset_ns) > (
            _STEP_NS
        )

    def named(self, short: str) -> str | None:
        """The node of this name, without its domain; None: there is none, or more than one."""
        return self._by_short_name.get(short)

    def last(self, node: str) -> Heartbeat | None:
        heard = self._heard.get(node)
        return None if heard is None else heard.beat

    def is_silent(self, node: str, now_ns: int) -> bool:
        """It does not say that it lives."""
        heard = self._heard.get(node)
        return heard is None or heard.seen_ns is None or now_ns - heard.seen_ns > SILENT_AFTER_NS

    def is_ethernet(self, node: str, key: str) -> bool:
        """The port, as far as its node says anything."""
        heard = self._heard.get(node)
        return heard is not None and key in heard.ethernet

    def is_readable(self, node: str, key: str) -> bool:
        """The port, as far as its node says anything; one that is gone is not among its ports."""
        heard = self._heard.get(node)
        if heard is None or heard.beat is None or not heard.beat.ports:
            return True
        return key in heard.readable

    def shift_ns(self, node: str, wall_offset_ns: int | None = None) -> int:
        """By which the node's wall clock was ahead.

        Where the clock has been set since (`wall_offset_ns` is as it stood then), it was another.
        """
        now = self._clocks.get(node)
        if now is None:
            return 0
        stepped_ns = 0 if wall_offset_ns is None else wall_offset_ns - now.wall_offset_ns
        # More than that is another boot.
        if abs(stepped_ns) < _GRID_NS // 2 or abs(stepped_ns) > _LONGEST_STEP_NS:
            return now.shift_ns
        return now.shift_ns + _on_grid(stepped_ns)

    def view(self, now_unix_ns: int) -> tuple[NodeView, ...]:
        """All that were ever heard of, in order of their names."""
        return tuple(_view(node, self._heard[node], now_unix_ns) for node in self._names)


def _view(node: str, heard: _Heard, now_ns: int) -> NodeView:
    if heard.view is None:
        heard.view = _view_of(node, heard)
    if heard.seen_ns is None or now_ns - heard.seen_ns <= SILENT_AFTER_NS:
        return heard.view
    why = f"Nothing was heard for {(now_ns - heard.seen_ns) // SECOND_NS} s."
    return replace(heard.view, health="unknown", reasons=(why,))


def _view_of(node: str, heard: _Heard) -> NodeView:
    """By its last heartbeat, as if that was just now."""
    if heard.beat is None:
        why = "No heartbeat came since the hub began."
        return NodeView(node, "unknown", (why,), None, None, None)
    reasons = tuple(_reasons(heard.beat))
    health: Health = "unhealthy" if reasons else "healthy"
    return NodeView(node, health, reasons, heard.seen_ns, heard.clock(), heard.beat)


def _reasons(beat: Heartbeat) -> Iterator[str]:
    yield from beat.not_ready
    for port in beat.ports:
        if port.maintenance or not port.watched:
            continue
        if not port.readable:
            yield f"{port.port} cannot be read."
        elif port.up is False:
            yield f"{port.port} is down."
        elif port.flapping:
            yield f"{port.port} is flapping."


def _was_set(before: Heartbeat, now: Heartbeat) -> bool:
    if before.boot != now.boot:
        return True
    moved = now.sent_unix_ns - now.sent_monotonic_ns
    return abs(moved - (before.sent_unix_ns - before.sent_monotonic_ns)) > _STEP_NS


def _likely(low: float, high: float, said: ClockState | None) -> float:
    """What the node's kernel says of its clock counts as far as heartbeats do not disprove it."""
    if said is None or not said.is_synchronized or said.largest_error_seconds is None:
        return low
    error = said.largest_error_seconds
    least, most = max(low, -error), min(high, error)
    return min(max(0.0, least), most) if least <= most else low


def _on_grid(ns: float) -> int:
    return round(ns / _GRID_NS) * _GRID_NS
