"""Counters: how one counter file moves with the timeline of its port, and how it may be odd."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

import msgspec

from flapd.model.times import SECOND_NS
from simulators.fabric.node import Changes, File, Leaves, decimal
from simulators.fabric.schedule import NotNegative, Positive, nanoseconds
from simulators.fabric.timeline import Timeline

Count = Annotated[int, msgspec.Meta(ge=0)]

CARRIER_DOWNS = "net/carrier_down_count"
CARRIER_UPS = "net/carrier_up_count"


class Rule(NamedTuple):
    """How one counter moves: by so many with each down, and by one each so many bytes."""

    bits: int
    stops: bool
    """At its highest value, where others begin again at 0."""
    per_down: int = 0
    """With each down of the link."""
    per_leave: int = 0
    """With each time the port ceases to be ACTIVE."""
    per_return: int = 0
    """With each time it is ACTIVE again."""
    bytes_per_step: int = 0
    """0: traffic does not move it."""

    def shown(self, value: int) -> int:
        top = (1 << self.bits) - 1
        return min(value, top) if self.stops else value & top


def stops(bits: int, per_down: int = 0) -> Rule:
    return Rule(bits, stops=True, per_down=per_down)


def wraps(bits: int, per_down: int = 0, bytes_per_step: int = 0) -> Rule:
    return Rule(bits, stops=False, per_down=per_down, bytes_per_step=bytes_per_step)


CARRIER_RULES: dict[str, Rule] = {
    CARRIER_DOWNS: Rule(32, stops=False, per_leave=1),
    CARRIER_UPS: Rule(32, stops=False, per_return=1),
}
"""IPoIB has carrier while its port is ACTIVE (ulp/ipoib), Ethernet while the link is up."""


class Fall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The counter is lower by `by` at once, never below 0, and nobody knows why."""

    at_seconds: float
    by: Count


class Burst(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The counter rises by `count`, evenly within `over_seconds`."""

    at_seconds: float
    count: Count
    over_seconds: Positive = 1.0

    def risen(self, seconds: float) -> int:
        return round(
            self.count * min(1.0, max(0.0, (seconds - self.at_seconds) / self.over_seconds))
        )


class Oddity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How one counter differs from what its driver makes of it."""

    moves: bool = True
    """False: it shows its first value for ever."""
    lag_seconds: NotNegative = 0.0
    """It shows what was true so long ago."""
    per_down: Count | None = None
    """It rises by so many with each down of the link; None: as usual."""
    falls: tuple[Fall, ...] = ()
    bursts: tuple[Burst, ...] = ()


class Reset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Somebody sets the counters below `counters/` to 0, as `perfquery -R` does."""

    at_seconds: float
    which: Literal["all", "errors"] = "all"


@dataclass(frozen=True)
class Cut:
    """At `at_ns` the counters whose names begin so start again at 0."""

    at_ns: int
    prefixes: tuple[str, ...]
    only_errors: bool = False

    def concerns(self, name: str, rule: Rule) -> bool:
        return name.startswith(self.prefixes) and (rule.stops or not self.only_errors)


@dataclass(frozen=True)
class Source:
    """What the counters of a port are computed from; `initial` holds first values by name."""

    timeline: Timeline
    bytes_per_second: int
    origin_ns: int
    cuts: tuple[Cut, ...] = ()
    initial: Mapping[str, int] = field(default_factory=dict)
    oddities: Mapping[str, Oddity] = field(default_factory=dict)

    def counter(self, name: str, rule: Rule) -> "Counter":
        return Counter(name, rule, self)

    def files(self, rules: Mapping[str, Rule]) -> Leaves:
        return {name: self.counter(name, rule).file() for name, rule in rules.items()}


class Counter:
    """One counter at every moment."""

    def __init__(self, name: str, rule: Rule, source: Source) -> None:
        self._oddity = source.oddities.get(name, Oddity())
        per_down = self._oddity.per_down
        self._rule = rule if per_down is None else rule._replace(per_down=per_down)
        self._source = source
        self._lag_ns = nanoseconds(self._oddity.lag_seconds)
        cuts = list(self._cuts(name))
        self._from_ns = [at_ns for at_ns, _ in cuts]
        # What it shows at the begin of each piece, and what had moved it by then.
        self._begins = [(source.initial.get(name, 0), 0)]
        for piece, (at_ns, fall) in enumerate(cuts):
            value = self._value(piece, at_ns)
            self._begins.append((max(0, value - fall), self._moved(at_ns)))

    def value(self, t_ns: int) -> int:
        return self._value(bisect_right(self._from_ns, t_ns), t_ns)

    @property
    def ever_falls(self) -> bool:
        return bool(self._from_ns)

    def file(self) -> File:
        return decimal(self.value, self._changes())

    def _cuts(self, name: str) -> Iterable[tuple[int, int]]:
        """Moments at which it falls, and by how much at most."""
        resets = (
            (cut.at_ns, 1 << self._rule.bits)
            for cut in self._source.cuts
            if cut.concerns(name, self._rule)
        )
        falls = ((self._at_ns(fall.at_seconds), fall.by) for fall in self._oddity.falls)
        return sorted((*resets, *falls))

    def _at_ns(self, seconds: float) -> int:
        return self._source.origin_ns + nanoseconds(seconds)

    def _value(self, piece: int, t_ns: int) -> int:
        first, moved_before = self._begins[piece]
        return self._rule.shown(first + self._moved(t_ns) - moved_before)

    def _moved(self, t_ns: int) -> int:
        """By how much it would have risen in all, were it never cut."""
        return sum(self._movements(t_ns - self._lag_ns)) if self._oddity.moves else 0

    def _movements(self, t_ns: int) -> Iterator[int]:
        rule, timeline = self._rule, self._source.timeline
        yield rule.per_down * timeline.downs(t_ns)
        yield rule.per_leave * timeline.leaves(t_ns)
        yield rule.per_return * timeline.returns(t_ns)
        if rule.bytes_per_step:
            sent = timeline.traffic_ns(t_ns) * self._source.bytes_per_second
            yield sent // (SECOND_NS * rule.bytes_per_step)
        for burst in self._oddity.bursts:
            yield burst.risen((t_ns - self._source.origin_ns) / SECOND_NS)

    def _changes(self) -> Changes:
        rule = self._rule
        if rule.bytes_per_step or self._lag_ns or self._oddity.bursts or self._from_ns:
            return "flows"
        return "edges" if rule.per_down or rule.per_leave or rule.per_return else "never"
