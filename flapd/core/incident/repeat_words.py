"""What a port that flaps again and again has met before, in words, and whether chance would too."""

from flapd.core.incident.background import BEFORE_NS
from flapd.core.incident.blame import Share
from flapd.core.incident.repeats import repeats_of
from flapd.core.incident.story import Story
from flapd.core.incident.windows import AHEAD_SECONDS, CLOCK_SECONDS, COLLECTIVE_SECONDS
from flapd.core.incident.words import percent, plural, seconds
from flapd.core.spans import Span
from flapd.model.times import SECOND_NS

_LONGEST_BUDGET_SECONDS = 600.0


def repeats_sentence(share: Share, story: Story) -> str | None:
    """Of the day up to this story; None where the port hardly flapped in it."""
    scene, window = story.scene, _window(story)
    until_ns = share.outage.down.latest_unix_ns + window[1]
    known = (_known_since_ns(share.outage.key, story, until_ns), until_ns)
    starts = scene.background.starts(share.outage.key, *known)
    found = repeats_of(starts, scene.hits, window, known)
    if found is None:
        return None
    reach = seconds(window[1] / SECOND_NS)
    return (
        f"{share.outage.port} flapped {plural(found.flaps, 'time')} within a day, {found.met} of "
        f"them with something that hit this job within {reach}: chance brings as many with a "
        f"probability of {percent(min(1.0, found.by_rate))}, and {percent(found.by_shift)} of all "
        "ways to shift these flaps along that time meet as many."
    )


def _window(story: Story) -> Span:
    budget = min(story.scene.terms.budget.nominal, _LONGEST_BUDGET_SECONDS)
    reach = budget + AHEAD_SECONDS + COLLECTIVE_SECONDS + CLOCK_SECONDS
    return -round(CLOCK_SECONDS * SECOND_NS), round(reach * SECOND_NS)


def _known_since_ns(key: str, story: Story, until_ns: int) -> int:
    """Since when both are known: downs of the port, and what hit the job."""
    scene = story.scene
    since = [job.since_unix_ns for job in scene.jobs]
    watched = scene.evidence.watched.get(key)
    return max(
        until_ns - BEFORE_NS,
        min(since, default=0),
        0 if watched is None else watched.since_ns,
    )
