"""FlapRow: an outage as the history's columns see it."""

from flapd.model.event import Outage

OPEN_END_UNIX_NS = 2**63 - 1
"""End of what is open: it overlaps every span that begins after it."""
UNBOUNDED_CLASS = 99
"""Length class of what is open."""


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


def length_class(length_ns: int) -> int:
    """Lengths below 4**n have a class of at most n; a longer one never has a lower class."""
    return (max(0, length_ns).bit_length() + 1) // 2


def longest_ns(klass: int) -> int | None:
    """The length that no outage of this class reaches; None = it has no bound."""
    return None if klass == UNBOUNDED_CLASS else 4**klass


def class_of(outage: Outage) -> int:
    """Its length class by both clocks, since the wall clock may have been set in between."""
    end_ns = end_unix_ns(outage)
    if end_ns == OPEN_END_UNIX_NS:
        return UNBOUNDED_CLASS
    wall_ns = end_ns - outage.down.earliest_unix_ns
    return length_class(max(outage.down_ns_max or 0, wall_ns))
