"""Alike: what many nodes tell of one thing; one of them stands for all."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from flapd.core.job.primary import judged
from flapd.model.fault import Fault
from flapd.model.stall import Stall, StallClass
from flapd.model.times import SECOND_NS

_STOPS_WITHIN_NS = 3 * SECOND_NS
"""Traffic of a job stops everywhere at once, but for clocks and what was under way."""
_ERRORS_WITHIN_NS = 30 * SECOND_NS
_MOST_ERRORS = 4
"""Of one kind at one time: the first are nearest to the cause."""
_MOST_UNLIKE = 32
"""Ranks that are out of step say so in other words."""
_MOST_RANKS = 64
_OWN_PAUSES: tuple[StallClass, ...] = ("checkpoint", "evaluation", "start_up")
_WORTH: dict[StallClass, int] = {"local_link": 3, "this_node": 2, "remote": 1}
"""What a node sees of itself tells more than that it waited."""


class Told(NamedTuple):
    faults: list[Fault]
    stalls: list[Stall]
    alike: dict[str, tuple[Fault | Stall, ...]]
    """By id of one of these, the others that it stands for."""


def as_one(faults: Iterable[Fault], stalls: Iterable[Stall]) -> Told:
    """Of one job; a function of the set."""
    kept_faults, alike_faults = _errors(_judged(faults))
    kept_stalls, alike_stalls = _stops(stalls)
    return Told(kept_faults, kept_stalls, {**alike_faults, **alike_stalls})


def _judged(faults: Iterable[Fault]) -> list[Fault]:
    """What follows from others by its own node's account does so whatever others tell."""
    before = {fault.id: fault for fault in faults}
    return [
        replace(one, primary=one.primary and before[one.id].primary)
        for one in judged(before.values())
    ]


def _errors(faults: Sequence[Fault]) -> tuple[list[Fault], dict[str, tuple[Fault | Stall, ...]]]:
    primary = [one for one in faults if one.primary and one.time_ns is not None]
    kept = [one for one in faults if not one.primary or one.time_ns is None]
    alike: dict[str, tuple[Fault | Stall, ...]] = {}
    for kind in sorted({one.kind for one in primary}):
        of_kind = [one for one in primary if one.kind == kind]
        for first, *others in _runs(of_kind, _error_ns, _ERRORS_WITHIN_NS):
            told = _telling([first, *others])
            kept += told
            ids = {one.id for one in told}
            alike[first.id] = tuple(one for one in others if one.id not in ids)
    return kept, {name: others for name, others in alike.items() if others}


def _telling(run: Sequence[Fault]) -> list[Fault]:
    """The first, and of those that say something else the first."""
    unlike = {(one.process_group, one.seq, one.op, one.form): one for one in reversed(run)}
    chosen = [*run[:_MOST_ERRORS], *list(unlike.values())[:_MOST_UNLIKE]]
    return list({one.id: one for one in chosen}.values())


def _stops(stalls: Iterable[Stall]) -> tuple[list[Stall], dict[str, tuple[Fault | Stall, ...]]]:
    kept: list[Stall] = []
    alike: dict[str, tuple[Fault | Stall, ...]] = {}
    for run in _runs(stalls, lambda one: one.begin_unix_ns, _STOPS_WITHIN_NS):
        first = min(run, key=_rank)
        others = tuple(one for one in run if one is not first)
        kept.append(replace(first, stall_class=_class_of(run), end_ns=_end_ns(first, others)))
        if others:
            alike[first.id] = others
    return kept, alike


def _end_ns(first: Stall, others: Sequence[Stall]) -> int | None:
    """Where most nodes moved data again, so did one that has not told, or cannot any more."""
    ends = [one.end_unix_ns for one in others if one.end_unix_ns is not None]
    if first.end_ns is not None or 2 * len(ends) <= len(others):
        return first.end_ns
    return max(max(ends) - first.wall_offset_ns, first.begin_ns)


def _class_of(run: Sequence[Stall]) -> StallClass:
    """A pause of the job's own is known where the rank runs that tells of it; others just wait."""
    classes = {one.stall_class for one in run}
    own = [one for one in _OWN_PAUSES if one in classes]
    return own[0] if own and "local_link" not in classes else min(run, key=_rank).stall_class


def _rank(stall: Stall) -> tuple[int, bool, int, str]:
    """The one that tells most first; one that is over before one that is still told to go on."""
    ending = stall.stall_class == "job_end"
    worth = -1 if ending else _WORTH.get(stall.stall_class, 0)
    return -worth, stall.end_ns is None, stall.begin_unix_ns, stall.id


_Item = TypeVar("_Item", Fault, Stall)


def _runs(
    items: Iterable[_Item], when_ns: Callable[[_Item], int], within_ns: int
) -> list[list[_Item]]:
    """Those that begin so soon after the first of them."""
    runs: list[list[_Item]] = []
    for one in sorted(items, key=lambda item: (when_ns(item), item.id)):
        if runs and when_ns(one) - when_ns(runs[-1][0]) <= within_ns:
            runs[-1].append(one)
        else:
            runs.append([one])
    return runs


def _error_ns(fault: Fault) -> int:
    assert fault.time_ns is not None
    return fault.time_ns


def lagging(faults: Iterable[Fault]) -> list[int]:
    """Ranks that have completed least of what their group did, by their own words."""
    groups: dict[str | None, dict[int, int]] = {}
    for one in faults:
        if one.rank is not None and one.last_completed is not None:
            groups.setdefault(one.process_group, {})[one.rank] = one.last_completed
    last = max(groups.values(), key=len, default={})
    least = min(last.values(), default=0)
    behind = sorted(rank for rank, completed in last.items() if completed == least)
    return behind[:_MOST_RANKS] if len(behind) < len(last) else []
