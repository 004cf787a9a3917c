"""Reasons: what a driver, a module or the kernel's log says of an outage, in their words.

Each comes when it comes, some seconds before or after what it explains. It makes no outage
and narrows no bound.
"""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from flapd.model.event import Outage
from flapd.model.observation import KernelHint, LinkReason
from flapd.model.times import SECOND_NS, Edge

NEAR_NS = 10 * SECOND_NS
"""What was printed so long before or after a down may be of it."""
MOST_WAITING = 8
LONGEST_TOGETHER = 400
"""Characters of all that is told of one outage."""

_TELL_OF_A_DOWN = frozenset({"link_down", "module", "temperature", "firmware", "pcie"})
"""What lines of the log are about that may be the reason of one."""


class Reason(msgspec.Struct, frozen=True):
    text: str | None
    """None: it tells that the port went down, and not why."""
    source: str
    from_ns: int
    until_ns: int
    """It was said between these moments."""
    while_down: bool = False
    """It is said of a port that is down for as long as it is, not of its going down."""


def reason_of_link(told: LinkReason) -> Reason:
    return Reason(told.reason, told.source, told.before_ns, told.after_ns, while_down=True)


def reason_in_log(hint: KernelHint) -> Reason | None:
    """None where the line cannot be one: it tells that a link came up, say."""
    if hint.line.about not in _TELL_OF_A_DOWN:
        return None
    return Reason(hint.line.reason, "kernel_log", hint.logged_ns, hint.logged_ns)


def explains(reason: Reason, outage: Outage, last_down: Edge) -> bool:
    """`last_down` is that of the last of its downs, as far as that is known."""
    begun_ns = outage.down.earliest_ns
    if reason.while_down:
        if outage.status == "lost":
            return False
        ended_ns = None if outage.up is None else outage.up.latest_ns
        return begun_ns <= reason.until_ns and (ended_ns is None or reason.from_ns <= ended_ns)
    return begun_ns - NEAR_NS <= reason.until_ns and reason.from_ns <= last_down.latest_ns + NEAR_NS


def explained(outage: Outage, reason: Reason) -> Outage:
    """What was said before stays, and is said once."""
    told = [] if outage.reason is None else [outage.reason]
    if reason.text is not None and reason.text not in (outage.reason or ""):
        told.append(reason.text)
    together = "; ".join(told)
    sources = dict.fromkeys((*outage.evidence, reason.source))
    is_room = len(together) <= LONGEST_TOGETHER
    return replace(
        outage, reason=(together or None) if is_room else outage.reason, evidence=tuple(sources)
    )


def still_waiting(reasons: Iterable[Reason], reason: Reason) -> list[Reason]:
    """Those that may yet explain what is told later, with the new one."""
    near = [one for one in reasons if one.until_ns >= reason.from_ns - 2 * NEAR_NS]
    return [*near, reason][-MOST_WAITING:]
