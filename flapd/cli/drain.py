"""Drain: what a hub says of one node, which knows what goes on at the others."""

from collections.abc import Sequence

import msgspec

from flapd.cli.client import NotServedError, ask
from flapd.cli.output import decoded
from flapd.cli.target import Target
from flapd.cli.verdict import Verdict


class Drain(msgspec.Struct, frozen=True):
    node: str
    reason: str
    granted: bool


class Drains(msgspec.Struct, frozen=True):
    """The answer of /drains."""

    cap: int
    node: Drain | None
    known: bool


def drain_verdict(
    targets: Sequence[Target], node: str, max_flaps: int, window_seconds: float
) -> Verdict | None:
    """None: it is no hub that answers."""
    asked: dict[str, str | int] = {
        "node": node,
        "max_flaps": max_flaps,
        "window": f"{window_seconds:g}",
    }
    try:
        told = decoded(ask(targets, "/api/v1/drains", asked), Drains)
    except NotServedError:
        return None
    if told.node is None:
        known = Verdict("healthy", f"nothing speaks against {node}")
        return known if told.known else Verdict("unknown", f"nothing is heard of {node}")
    if told.node.granted:
        return Verdict("unhealthy", told.node.reason)
    held = f"as many others as may be taken out at one time are worse (hub.max_drains = {told.cap})"
    return Verdict("healthy", f"{told.node.reason}; but {held}")
