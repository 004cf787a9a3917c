"""Classes: why traffic stood still, as far as this node can tell.

When one link stalls a collective, every port of every node of the job goes quiet; so that all
are quiet says nothing. What tells is the link, who computes, who writes, who retransmits.
"""

from itertools import pairwise
from typing import Literal

import msgspec

from flapd.model.stall import StallClass
from flapd.model.times import SECOND_NS

_START_UP_NS = 300 * SECOND_NS
_ENOUGH_EARLIER = 3
_SPACING_SHARE = 0.1
_LENGTH_SHARE = 0.5


class Surroundings(msgspec.Struct, frozen=True):
    """What else is known of this node while traffic stands still; None: it cannot be seen."""

    processes: bool | None = None
    """Ranks of the job are alive."""
    gpus_busy: bool | None = None
    """A kernel of NCCL that waits keeps its GPU at 100 %."""
    storage_busy: bool | None = None
    """The node writes to storage as it does in its busiest times."""
    retransmitting: bool | None = None
    """Its ports wait for acknowledgements that do not come."""
    planned: Literal["checkpoint", "evaluation"] | None = None
    """What the job itself said that it would do now."""


class Pause(msgspec.Struct, frozen=True):
    """An earlier stall that no link explained."""

    begin_ns: int
    length_ns: int


def classify(
    around: Surroundings, *, link_event: bool, job_age_ns: int, recurs: bool
) -> tuple[StallClass, tuple[str, ...]]:
    """The class, and what was not seen that would have told it."""
    gpus, storage = around.gpus_busy, around.storage_busy
    young = job_age_ns < _START_UP_NS
    # Whether it recurs tells only if GPUs rest: a link elsewhere may flap once an hour as well, but
    # then they are busy waiting.
    rules: tuple[tuple[bool | None, StallClass, tuple[str, ...]], ...] = (
        (link_event, "local_link", ()),
        (around.processes is False, "job_end", ()),
        (around.planned is not None, around.planned or "unknown", ()),
        (storage and not gpus, "checkpoint", ("gpus_busy",)),
        (around.retransmitting, "remote", ()),
        (young and not gpus, "start_up", ("gpus_busy",)),
        (recurs and gpus is False and storage is None, "checkpoint", ("storage_busy",)),
        (gpus is False, "this_node", ()),
        (gpus, "remote", ("retransmitting",)),
        (True, "unknown", ("processes", "gpus_busy", "storage_busy", "retransmitting")),
    )
    _, kind, telling = next(rule for rule in rules if rule[0])
    return kind, _blind(around, *telling)


def _blind(around: Surroundings, *names: str) -> tuple[str, ...]:
    return tuple(name for name in names if getattr(around, name) is None)


def recurs(pause: Pause, earlier: list[Pause]) -> bool:
    """It comes as regularly as those before it that lasted about as long."""
    begins = [
        one.begin_ns for one in earlier if _near(pause.length_ns, one.length_ns, _LENGTH_SHARE)
    ]
    if len(begins) < _ENOUGH_EARLIER:
        return False
    spacings = sorted(later - before for before, later in pairwise([*begins, pause.begin_ns]))
    return all(_near(one, spacings[len(spacings) // 2], _SPACING_SHARE) for one in spacings)


def _near(one: int, other: int, share: float) -> bool:
    return abs(one - other) <= share * other
