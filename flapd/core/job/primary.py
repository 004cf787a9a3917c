"""Primary: which errors of a job are near their cause, and which follow from others.

Only the first error of a communicator is near the cause. A transport error is nearer to it than
the framework's report of it, and that is nearer than a watchdog's timeout or a death; but an
error brings down its process, and that brings errors of all kinds to others.
"""

from collections.abc import Iterable, Sequence

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

_REACH_NS = 600 * SECOND_NS
"""How long after an error others may follow from it: the longest retry budget in use, and more."""
_SLACK_NS = SECOND_NS
"""Between clocks of nodes, and between an error and who reports it: so much later counts as first
what is one step nearer to the cause."""


def judged(faults: Iterable[Fault]) -> list[Fault]:
    """The faults of one job with `primary` set, in their order; a function of the set.

    What has no time cannot be the first.
    """
    told = list(faults)
    # Sorted, so that the first is asked first: it explains nearly all of a large job's.
    errors = sorted(filter(_is_error, told), key=_order)
    return [replace(one, primary=_is_error(one) and not _follows(one, errors)) for one in told]


def _is_error(fault: Fault) -> bool:
    return fault.kind in _NEARNESS and not fault.consequence and fault.time_ns is not None


def _follows(fault: Fault, errors: Sequence[Fault]) -> bool:
    return any(_explains(one, fault) for one in errors if one is not fault)


def _order(error: Fault) -> tuple[int, str]:
    """One order of all, so that what is first follows from nothing."""
    assert error.time_ns is not None
    return error.time_ns + _NEARNESS[error.kind] * _SLACK_NS, error.id


def _explains(earlier: Fault, fault: Fault) -> bool:
    assert earlier.time_ns is not None
    if _order(earlier) >= _order(fault) or earlier.time_ns < _earliest_cause_ns(fault):
        return False
    is_like = _NEARNESS[earlier.kind] == _NEARNESS[fault.kind]
    is_of_others = is_like and _communicator(earlier) != _communicator(fault)
    # Both ends of a link may tell of it, each for itself.
    return earlier.kind == "process_death" or not is_of_others


def _earliest_cause_ns(fault: Fault) -> int:
    """What was before that has nothing to do with it: it began or was enqueued later."""
    assert fault.time_ns is not None
    if fault.started_ns is not None:
        return fault.started_ns - _REACH_NS
    timeout_ns = round((fault.timeout_seconds or 0.0) * SECOND_NS)
    return fault.time_ns - _REACH_NS - 2 * timeout_ns


def _communicator(fault: Fault) -> tuple[object, ...]:
    """The process group if it is known, else the process."""
    if fault.process_group is not None:
        return ("group", fault.process_group)
    return ("process", fault.host, fault.pid, fault.rank)
