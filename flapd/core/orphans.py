"""Orphans: what the history has as going on and nobody knows any more: how it ended is lost.

It is told to have ended when the node was read last: so long it is known to have gone on.
"""

from msgspec.structs import replace

from flapd.model.event import Outage
from flapd.model.incident import Incident
from flapd.model.job import Job
from flapd.model.stall import Stall

GoesOn = Outage | Job | Stall | Incident

UNSEEN_END = "when it ended"
LOST = "What flapd knew of it was lost before it was over: how it ended is not known."


def lost(item: GoesOn, known_until_unix_ns: int) -> GoesOn:
    """Its last revision."""
    if isinstance(item, Outage):
        return replace(item, revision=item.revision + 1, status="lost", settled=True)
    if isinstance(item, Job):
        until_ns = max(item.since_unix_ns, known_until_unix_ns)
        return replace(
            item,
            revision=item.revision + 1,
            until_unix_ns=until_ns,
            blind_to=_with_end(item.blind_to),
        )
    if isinstance(item, Stall):
        end_ns = max(item.begin_ns, known_until_unix_ns - item.wall_offset_ns)
        return replace(
            item, revision=item.revision + 1, end_ns=end_ns, blind_to=_with_end(item.blind_to)
        )
    return replace(
        item,
        revision=item.revision + 1,
        open=False,
        end_unix_ns=max(item.begin_unix_ns, known_until_unix_ns),
        blind_to=_with_end(item.blind_to),
        explanation=(*item.explanation, LOST),
    )


def _with_end(blind_to: tuple[str, ...]) -> tuple[str, ...]:
    return (*blind_to, UNSEEN_END)
