"""Slots: the fixed grid of time on which samples are kept, so that flaps share them."""

from flapd.model.event import Outage
from flapd.model.times import SECOND_NS

SLOT_NS = 10 * SECOND_NS
_WHOLE_NS = 120 * SECOND_NS
"""Moments of one outage closer than this are kept with all between them: a whole burst."""


def slots_around(outage: Outage, around_ns: int) -> list[range]:
    """Slots (monotonic time // SLOT_NS) that its black box covers, in order.

    Of an outage of days only what surrounds its edges.
    """
    edges = [outage.down] if outage.up is None else [outage.down, outage.up]
    moments = sorted(stamp for edge in edges for stamp in (edge.earliest_ns, edge.latest_ns))
    spans = [[moments[0], moments[0]]]
    for moment in moments:
        if moment - spans[-1][1] <= max(_WHOLE_NS, 2 * around_ns + SLOT_NS):
            spans[-1][1] = moment
        else:
            spans.append([moment, moment])
    return [
        range(max(0, first - around_ns) // SLOT_NS, (last + around_ns) // SLOT_NS + 1)
        for first, last in spans
    ]
