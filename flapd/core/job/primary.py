"""Primary: which errors of a job are near their cause, and which follow from others.

Only the first error of a communicator is near the cause. A transport error is nearer to it than
the framework's report of it, and that is nearer than a watchdog's timeout or a death; but an
error brings down its process, and that brings errors of all kinds to others.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from flapd.model.fault import Fault, FaultKind
from flapd.model.times import SECOND_NS

_NEARNESS: dict[FaultKind, int] = {
    "transport_error": 0,
    "fatal_event": 0,
    "counter": 0,
    "nccl_error": 1,
    "watchdog_timeout": 2,
    "heartbeat": 3,
    "process_death": 3,
}
"""The less, the nearer to the cause. What is not here is no error, or only ever a consequence."""

_LEVELS = sorted(set(_NEARNESS.values()))

_REACH_NS = 600 * SECOND_NS
"""How long after an error others may follow from it: the longest retry budget in use, and more."""
_SLACK_NS = SECOND_NS
"""Between clocks of nodes, and between an error and who reports it: so much later counts as first
what is one step nearer to the cause."""


class _Order(NamedTuple):
    counts_as_ns: int
    id: str
    time_ns: int


def judged(faults: Iterable[Fault]) -> list[Fault]:
    """The faults of one job with `primary` set, in their order; a function of the set.

    What has no time cannot be the first.
    """
    told = list(faults)
    groups = _groups(filter(_is_error, told))
    return [replace(one, primary=_is_error(one) and not _follows(one, groups)) for one in told]


def _is_error(fault: Fault) -> bool:
    return fault.kind in _NEARNESS and not fault.consequence and fault.time_ns is not None


def _groups(errors: Iterable[Fault]) -> dict[Hashable, list[_Order]]:
    """Errors that explain the same others, in order."""
    groups: dict[Hashable, list[_Order]] = {}
    for error in errors:
        for group in (error.kind, _nearness(error), _alike(error)):
            groups.setdefault(group, []).append(_order(error))
    for orders in groups.values():
        orders.sort()
    return groups


def _follows(fault: Fault, groups: Mapping[Hashable, list[_Order]]) -> bool:
    """From one before it, not long before.

    Of those that are as near to the cause only what is of its communicator can be why, since
    both ends of a link may tell of it, each for itself; but a death brings errors to all.
    """
    others = (("nearness", one) for one in _LEVELS if one != _NEARNESS[fault.kind])
    return any(
        _has_between(groups.get(group, ()), fault)
        for group in (*others, "process_death", _alike(fault))
    )


def _has_between(orders: Sequence[_Order], fault: Fault) -> bool:
    """The last of them before the fault is not too long before it; all are equally near."""
    place = bisect_left(orders, _order(fault))
    return place > 0 and orders[place - 1].time_ns >= _earliest_cause_ns(fault)


def _order(error: Fault) -> _Order:
    """One order of all, so that what is first follows from nothing."""
    assert error.time_ns is not None
    counts_as_ns = error.time_ns + _NEARNESS[error.kind] * _SLACK_NS
    return _Order(counts_as_ns, error.id, error.time_ns)


def _earliest_cause_ns(fault: Fault) -> int:
    """What was before that has nothing to do with it: it began or was enqueued later."""
    assert fault.time_ns is not None
    if fault.started_ns is not None:
        return fault.started_ns - _REACH_NS
    timeout_ns = round((fault.timeout_seconds or 0.0) * SECOND_NS)
    return fault.time_ns - _REACH_NS - 2 * timeout_ns


def _nearness(fault: Fault) -> Hashable:
    return ("nearness", _NEARNESS[fault.kind])


def _alike(fault: Fault) -> Hashable:
    """As near to the cause and of one communicator: the group if it is known, else the process."""
    if fault.process_group is not None:
        return (_nearness(fault), fault.process_group)
    return (_nearness(fault), fault.host, fault.pid, fault.rank)
