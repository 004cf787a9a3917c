"""Verdict: may a scheduler put a job on this node. Pure; what cannot be told is never a no.

A scheduler drains on a no, and what every node sees at once would drain them all: what all
ports of a node share is its switch's, its subnet's or somebody's work, and no fault of the node.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from flapd.model.times import SECOND_NS

Health = Literal["healthy", "unhealthy", "unknown"]

SAME_SECONDS = 30
"""A driver that is unloaded takes its devices down one after the other."""
BACK_WITHIN_SECONDS = 600
"""A device that went with all others and is not back by then is missing."""
LOOK_BACK_SECONDS = 86_400
"""Flaps of this long may be why a port is called flapping now."""
FLAPPING_DOWNS = 2
"""One down makes no port flapping."""

_REASONS_TOLD = 5


class Port(NamedTuple):
    name: str
    present: bool
    """Found now, and up at some time."""
    missing: bool
    """Up at some time, and not found now."""
    up: bool | None
    flapping: bool
    maintenance: bool
    readable: bool


class Flap(NamedTuple):
    """Unix times in ns."""

    port: str
    earliest_ns: int
    latest_ns: int
    """It went down between these two."""
    end_ns: int | None
    """None while it is down, or where the end is not known."""
    downs: int
    counts: bool
    """Its cause is nobody's work, and it is not of the time after a boot."""


class Facts(NamedTuple):
    now_ns: int
    ports: Sequence[Port]
    flaps: Sequence[Flap]
    """Of the last LOOK_BACK_SECONDS, or longer."""
    expected: int | None = None
    """Ports this node should have; None = not known."""
    scouted: bool = True
    """It is known which ports are there, those of `blind_devices` excepted."""
    blind_devices: Sequence[str] = ()
    """Their ports are told as last known."""
    booted: bool = False
    """Not long ago: not everything need be there yet."""
    blind: Sequence[str] = ()
    """What could not be found out, a sentence each."""


class Limits(NamedTuple):
    max_flaps: int
    window_ns: int


class Verdict(NamedTuple):
    health: Health
    reason: str


class _Split(NamedTuple):
    """The flaps of one port."""

    own: list[Flap]
    shared: list[Flap]


def judge(facts: Facts, limits: Limits) -> Verdict:
    """`unhealthy` only for what this node has alone."""
    own = {port.name: _split(port.name, facts).own for port in _judged(facts)}
    wrong = [*_missing(facts), *_flapping(facts, own), *_too_many(facts, own, limits)]
    if wrong:
        return Verdict("unhealthy", _told(wrong))
    unknown = [*_unscouted(facts), *facts.blind, *_unreadable(facts), *_nothing_watched(facts)]
    if unknown:
        return Verdict("unknown", _told([*dict.fromkeys(unknown)]))
    return Verdict("healthy", _told(_remarks(facts)) or _all_well(facts))


def _split(name: str, facts: Facts) -> _Split:
    """What all other ports had too, and the rest that counts.

    A flap of another port answers for one flap of this one: else a port that flaps for ever
    would be excused by one flap of its neighbour.
    """
    others = [_flaps_of(port.name, facts) for port in _judged(facts) if port.name != name]
    unused = [list(flaps) for flaps in others]
    split = _Split([], [])
    for flap in _flaps_of(name, facts):
        answers = [_first_together(flap, flaps) for flaps in unused]
        went = [_went_before(flap, flaps) for flaps in others]
        down = [_was_down(flap, flaps) for flaps in others]
        if any((*answers, *went)) and all(map(any, zip(answers, went, down, strict=True))):
            split.shared.append(flap)
            _use(answers, unused)
        elif flap.counts:
            split.own.append(flap)
    return split


def _flaps_of(name: str, facts: Facts) -> list[Flap]:
    """The earliest first, which finds an answer for most."""
    flaps = [flap for flap in facts.flaps if flap.port == name]
    return sorted(flaps, key=lambda flap: (flap.earliest_ns, flap.latest_ns))


def _use(answers: Sequence[Flap | None], unused: Sequence[list[Flap]]) -> None:
    for answer, flaps in zip(answers, unused, strict=True):
        if answer is not None:
            flaps.remove(answer)


def _first_together(flap: Flap, others: Sequence[Flap]) -> Flap | None:
    return next((other for other in others if _together(flap, other)), None)


def _together(flap: Flap, other: Flap) -> bool:
    """They went down in the same seconds, or may have."""
    apart_ns = max(flap.earliest_ns, other.earliest_ns) - min(flap.latest_ns, other.latest_ns)
    return apart_ns <= SAME_SECONDS * SECOND_NS


def _went_before(flap: Flap, others: Sequence[Flap]) -> bool:
    """One went down not long before and was down still: a switch lets go of a port repeatedly."""
    since_ns = flap.earliest_ns - BACK_WITHIN_SECONDS * SECOND_NS
    return _was_down(flap, [other for other in others if other.earliest_ns >= since_ns])


def _was_down(flap: Flap, others: Sequence[Flap]) -> bool:
    return any(
        other.earliest_ns <= flap.earliest_ns
        and (other.end_ns is None or other.end_ns >= flap.earliest_ns)
        for other in others
    )


def _judged(facts: Facts) -> list[Port]:
    return [port for port in facts.ports if port.present and not port.maintenance]


def _missing(facts: Facts) -> list[str]:
    """Not after a boot, and not while all ports are gone or went together and may come back."""
    if facts.booted or _all_are_gone(facts) or _may_be_hidden(facts):
        return []
    gone = [port for port in facts.ports if port.missing]
    excused = [port for port in gone if port.maintenance or _may_come_back(port, facts)]
    lacking = _lacking(facts, len(gone)) - len(excused)
    if facts.blind_devices:  # they may have ports that were never told
        lacking = min(lacking, len(gone) - len(excused))
    if lacking <= 0:
        return []
    names = ", ".join(port.name for port in gone if port not in excused)
    expected = "" if facts.expected is None else f" of {facts.expected} expected"
    return [f"{lacking}{expected} ports missing" + (f": {names}" if names else "")]


def _lacking(facts: Facts, gone: int) -> int:
    if facts.expected is None:
        return gone
    return facts.expected - sum(port.present for port in facts.ports)


def _may_be_hidden(facts: Facts) -> bool:
    """What is not found may be what nobody could look at: a blind device has a port at least."""
    seen = {port.name.rpartition("/")[0] for port in facts.ports if port.present}
    return not facts.scouted or not seen.issuperset(facts.blind_devices)


def _all_are_gone(facts: Facts) -> bool:
    """Of several; of a single port nothing can be told by comparing."""
    known = [port.present for port in facts.ports if port.present or port.missing]
    return len(known) > 1 and not any(known)


def _may_come_back(port: Port, facts: Facts) -> bool:
    since_ns = facts.now_ns - BACK_WITHIN_SECONDS * SECOND_NS
    shared = _split(port.name, facts).shared
    return any(flap.end_ns is None and flap.latest_ns >= since_ns for flap in shared)


def _flapping(facts: Facts, own: Mapping[str, Sequence[Flap]]) -> list[str]:
    """By what it did alone, or where nothing of it is known any more, unless all ports are."""
    judged = _judged(facts)
    flapping = [port.name for port in judged if port.flapping]
    all_are = len(judged) > 1 and len(flapping) == len(judged)
    known = {flap.port for flap in facts.flaps}
    return [
        f"{name} is flapping"
        for name in flapping
        if sum(flap.downs for flap in own[name]) >= FLAPPING_DOWNS
        or (name not in known and not all_are)
    ]


def _too_many(facts: Facts, own: Mapping[str, Sequence[Flap]], limits: Limits) -> list[str]:
    since_ns = facts.now_ns - limits.window_ns
    hours = limits.window_ns / SECOND_NS / 3600
    counts = {
        name: sum(flap.end_ns is None or flap.end_ns >= since_ns for flap in flaps)
        for name, flaps in own.items()
    }
    return [
        f"{name} flapped {count} times in {hours:g} h"
        for name, count in counts.items()
        if count > limits.max_flaps
    ]


def _unscouted(facts: Facts) -> list[str]:
    told = [f"which ports {device} has cannot be told" for device in facts.blind_devices]
    return told if facts.scouted else ["it is not known yet which ports there are", *told]


def _unreadable(facts: Facts) -> list[str]:
    return [f"{port.name} cannot be read" for port in _judged(facts) if not port.readable]


def _nothing_watched(facts: Facts) -> list[str]:
    """Of ports that never were up nobody can tell which are down and which are not used."""
    if any(port.present or port.missing for port in facts.ports):
        return []
    return ["nothing is watched: no port was ever up here"]


def _remarks(facts: Facts) -> list[str]:
    """What a person should see and a scheduler should not act on."""
    judged = _judged(facts)
    flapping = [port for port in judged if port.flapping]
    down = [port.name for port in judged if port.up is False]
    resting = [port.name for port in facts.ports if port.maintenance]
    if _all_are_gone(facts):
        return ["no port is found, which all ports share"]
    told = []
    if flapping:
        told.append("ports flapped together, which is no fault of this node")
    if down:
        told.append(f"down, which alone does not count: {', '.join(down)}")
    if resting:
        told.append(f"in maintenance: {', '.join(resting)}")
    return told


def _all_well(facts: Facts) -> str:
    count = len(_judged(facts))
    return f"{count} port{'' if count == 1 else 's'} watched, none is flapping or missing"


def _told(sentences: Sequence[str]) -> str:
    more = len(sentences) - _REASONS_TOLD
    told = "; ".join(sentences[:_REASONS_TOLD])
    return f"{told}; and {more} more" if more > 0 else told
