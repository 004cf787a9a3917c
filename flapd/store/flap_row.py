"""FlapRow: an outage as the history's columns see it."""

from typing import Any

from flapd.model.event import Outage
from flapd.store.span import OPEN_END_UNIX_NS, UNBOUNDED_CLASS, length_class


def flap_facet(outage: Outage) -> dict[str, Any]:
    return {
        "kind": outage.kind,
        "status": outage.status,
        "cause": outage.cause,
        "layer": outage.layer,
        "seen": outage.seen,
        "length_class": _class_of(outage),
    }


def flap_row(outage: Outage) -> dict[str, Any]:
    return {
        "node": outage.node,
        "key": outage.key,
        "port": outage.port,
        "guid": outage.guid,
        "count": outage.count,
        "down_unix_ns": outage.down.earliest_unix_ns,
        "end_unix_ns": end_unix_ns(outage),
        "down_ns_min": outage.down_ns_min,
        "down_ns_max": outage.down_ns_max,
    }


def end_unix_ns(outage: Outage) -> int:
    """Last moment at which it can have been down.

    A lost outage whose end was not seen is known of until it was told lost; that stamp
    may be of a later boot, and then it says nothing.
    """
    if outage.up is not None:
        # The wall clock may have been set back meanwhile: an end before its beginning is none.
        return max(outage.up.latest_unix_ns, outage.down.latest_unix_ns)
    if outage.status == "lost":
        last_ns = max(outage.down.latest_ns, outage.recorded_ns)
        return last_ns + outage.down.wall_offset_ns
    return OPEN_END_UNIX_NS


def _class_of(outage: Outage) -> int:
    """Its length class by both clocks, since the wall clock may have been set in between."""
    end_ns = end_unix_ns(outage)
    if end_ns == OPEN_END_UNIX_NS:
        return UNBOUNDED_CLASS
    wall_ns = end_ns - outage.down.earliest_unix_ns
    return length_class(max(outage.down_ns_max or 0, wall_ns))
