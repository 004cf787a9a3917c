"""Step stalls: for how long traffic stood still and why, where several nodes tell of one stall."""

from collections.abc import Mapping, Sequence

from flapd.core.spans import Span, length
from flapd.model.stall import StallClass
from flapd.model.times import SECOND_NS

_SURER_FIRST: tuple[StallClass, ...] = (
    "local_link",
    "job_end",
    "checkpoint",
    "evaluation",
    "start_up",
    "this_node",
    "remote",
    "unknown",
)
"""Who saw its own link go knows better than who saw nothing but that others are waited for."""


def stalled_seconds(spans: Mapping[StallClass, Sequence[Span]]) -> dict[str, float]:
    """By class; a moment of which several tell counts once, for the surest of their classes."""
    told: dict[str, float] = {}
    looked_at: list[Span] = []
    so_far_ns = 0
    for stall_class in _SURER_FIRST:
        looked_at += spans.get(stall_class, ())
        whole_ns = length(looked_at)
        if whole_ns > so_far_ns:
            told[stall_class] = (whole_ns - so_far_ns) / SECOND_NS
        so_far_ns = whole_ns
    return told
