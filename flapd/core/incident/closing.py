"""Closing: when a story is over, and when the last of it was seen."""

from flapd.core.incident.attempts import back_ns, gone_ns
from flapd.core.incident.blame import time_ns
from flapd.core.incident.evidence import end_ns
from flapd.core.incident.scene import LONGEST_OPEN_NS
from flapd.core.incident.story import Story, longest_ns
from flapd.core.incident.verdict import death_of, died_ns, was_cut_off
from flapd.model.times import SECOND_NS

_QUIET_NS = 60 * SECOND_NS
_QUIET_AFTER_DEATH_NS = 120 * SECOND_NS
_LONGEST_PATIENCE_SECONDS = 600.0
_LATE = 2.0
"""A restart that takes so many times as long as usual is not waited for any longer."""


def last_ns(story: Story) -> int:
    """The last that was seen of it."""
    ends = [end_ns(one) or one.down.latest_unix_ns for one in story.outages]
    ends += [stall.end_unix_ns or stall.begin_unix_ns for stall in story.stalls]
    ends += [time_ns(fault) for fault in story.errors]
    ends += [fault.time_ns or 0 for fault in story.followers]
    return max(ends)


def is_open(story: Story) -> bool:
    """It goes on, or more may be heard of it; not for ever."""
    now_ns, latest_ns = story.scene.evidence.now_ns, last_ns(story)
    if now_ns is None:
        return False
    if now_ns < _awaited_until_ns(story):
        return True
    over_ns = story.scene.over_at_ns()
    if _goes_on(story) and over_ns is None:
        return now_ns < story.begin_ns + LONGEST_OPEN_NS
    return now_ns < max(latest_ns, min(over_ns or 0, story.scene.until_ns)) + _quiet_ns(story)


def _awaited_until_ns(story: Story) -> int:
    """Until it runs again, what its death cost is not known; some never do."""
    dead_ns, jobs = died_ns(story), story.scene.jobs
    over_ns = None if dead_ns is None else gone_ns(jobs, dead_ns)
    if dead_ns is None or over_ns is None:
        return 0
    last_ns = story.begin_ns + longest_ns(story.scene)
    if back_ns(jobs, dead_ns, last_ns) is not None:
        return 0
    usual = story.scene.terms.inputs.restart_seconds.value
    return min(over_ns + round(_LATE * usual * SECOND_NS), last_ns)


def _goes_on(story: Story) -> bool:
    stands_still = any(stall.end_ns is None for stall in story.stalls)
    return stands_still or any(one.status == "open" for one in story.outages)


def _quiet_ns(story: Story) -> int:
    """So long after the last evidence nothing more is to be expected."""
    if death_of(story) is not None or was_cut_off(story):
        return _QUIET_AFTER_DEATH_NS
    if story.stalls:
        return _QUIET_NS
    patience = min(story.scene.terms.budget.high, _LONGEST_PATIENCE_SECONDS)
    return max(_QUIET_NS, round(patience * SECOND_NS))
