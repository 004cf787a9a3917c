"""Story: symptoms and outages that belong together, and what is blamed for them."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from flapd.core.incident.blame import Blame, blame, time_ns
from flapd.core.incident.evidence import begin_ns, end_ns
from flapd.core.incident.scene import FOREVER_NS, LONGEST_OPEN_NS, Scene
from flapd.core.spans import Span, overlap
from flapd.model.event import Outage
from flapd.model.fault import Fault, FaultKind
from flapd.model.incident import Verdict
from flapd.model.stall import Stall, StallClass
from flapd.model.times import SECOND_NS

ORDINARY: frozenset[StallClass] = frozenset({"checkpoint", "evaluation", "start_up", "job_end"})
"""Stalls that are no news."""
_PROOF: dict[Verdict, int] = {"caused": 4, "likely": 3, "not_fabric": 2, "coincident": 1}
_NEARNESS: dict[FaultKind, int] = {
    "transport_error": 3,
    "fatal_event": 3,
    "counter": 3,
    "nccl_error": 2,
    "watchdog_timeout": 1,
}
_AFTER_DEATH_NS = 120 * SECOND_NS
"""So long after an error what follows is of the same death; PyTorch 2.8 waits 60 s in between."""
_SLACK_NS = 2 * SECOND_NS
_REACH_NS = 600 * SECOND_NS
"""How long after the first error others follow from it (core/job/primary.py)."""
_LONGEST_KEPT_NS = 24 * 3600 * SECOND_NS
"""A port that is down for days is not one story with all that happens meanwhile."""


class Story(msgspec.Struct, frozen=True):
    """What becomes one incident."""

    scene: Scene
    blames: tuple[Blame, ...]
    """One a symptom, in order of time."""
    outages: tuple[Outage, ...]
    """In order of time."""
    followers: tuple[Fault, ...] = ()
    """Faults that follow from others, and what ports told meanwhile; in order of time."""

    @property
    def id(self) -> str:
        return _name(self.scene, self._members()[0][1])

    @property
    def job_name(self) -> str:
        """Empty where it has none."""
        return self.scene.job or ""

    @property
    def names(self) -> frozenset[str]:
        """Every id that it would have if less of it were known."""
        return frozenset(_name(self.scene, member) for member in self.members)

    @property
    def members(self) -> list[str]:
        """Ids of all that is told in it."""
        return [*(name for _, name in self._members()), *(one.id for one in self.followers)]

    def _members(self) -> list[tuple[int, str]]:
        symptoms = ((time_ns(one.symptom), one.symptom.id) for one in self.blames)
        return sorted([*symptoms, *((begin_ns(one), one.id) for one in self.outages)])

    @property
    def begin_ns(self) -> int:
        return self._members()[0][0]

    @property
    def decisive(self) -> Blame | None:
        """The symptom that tells most, since of one event all have one cause.

        Where several prove as much it is the error that is nearest to the cause.
        """
        return max(self.blames, key=_telling, default=None)

    @property
    def stalls(self) -> list[Stall]:
        return [one.symptom for one in self.blames if isinstance(one.symptom, Stall)]

    @property
    def errors(self) -> list[Fault]:
        return [one.symptom for one in self.blames if isinstance(one.symptom, Fault)]


def stories_of(scene: Scene) -> list[Story]:
    """In order of time."""
    symptoms = _symptoms(scene)
    scene = replace(scene, hits=_hits(symptoms, scene))
    blames = [blame(symptom, scene) for symptom in symptoms]
    groups = _groups(blames, scene)
    homes = _homes(groups, scene)
    stories = [Story(scene, tuple(group), tuple(homes[i])) for i, group in enumerate(groups)]
    homed = {one.id for home in homes.values() for one in home}
    alone = [one for one in scene.outages if one.id in scene.alone - homed]
    stories += [Story(scene, (), tuple(flaps)) for flaps in _bunches(alone, scene)]
    stories.sort(key=lambda story: (story.begin_ns, story.id))
    return _with_followers([_as_of_its_end(story) for story in stories], scene)


def _as_of_its_end(story: Story) -> Story:
    """When the job was over, nobody waited any more."""
    over_ns = story.scene.over_at_ns()
    over_ns = FOREVER_NS if over_ns is None else max(over_ns, story.begin_ns)
    latest_ns = min(story.begin_ns + LONGEST_OPEN_NS, over_ns)
    return replace(story, scene=replace(story.scene, latest_ns=latest_ns))


def _name(scene: Scene, first: str) -> str:
    said = f"{scene.evidence.node}|{scene.job or ''}|{first}"
    return "incident-" + blake2b(said.encode(), digest_size=8).hexdigest()


def _telling(blame: Blame) -> tuple[int, int, float]:
    symptom = blame.symptom
    proof = 0 if blame.verdict is None else _PROOF[blame.verdict]
    nearness = 0 if isinstance(symptom, Stall) else 1 + _NEARNESS.get(symptom.kind, 0)
    return proof, nearness, blame.probability


def _symptoms(scene: Scene) -> list[Fault | Stall]:
    errors = [fault for fault in scene.faults if fault.primary and fault.time_ns is not None]
    stalls = [stall for stall in scene.stalls if stall.stall_class not in ORDINARY]
    symptoms: list[Fault | Stall] = [*errors, *stalls]
    return sorted(symptoms, key=lambda one: (time_ns(one), one.id))


def _hits(symptoms: Iterable[Fault | Stall], scene: Scene) -> tuple[int, ...]:
    earlier = scene.evidence.earlier_hits.get(scene.job or "", ())
    return tuple(sorted([*earlier, *map(began_ns, symptoms)]))


def _extent(symptom: Fault | Stall, scene: Scene) -> Span:
    """What begins within it belongs to it."""
    if isinstance(symptom, Stall):
        end_ns = symptom.end_unix_ns
        last_ns = scene.until_ns if end_ns is None else end_ns
        return symptom.begin_unix_ns - _SLACK_NS, last_ns + _SLACK_NS
    at_ns = time_ns(symptom)
    return at_ns - _SLACK_NS, at_ns + _AFTER_DEATH_NS


def longest_ns(scene: Scene) -> int:
    """A story is cut there: a job that dies again and again has many."""
    watchdog_ns = min(scene.terms.inputs.watchdog_seconds.high, 86400.0) * SECOND_NS
    return min(max(LONGEST_OPEN_NS, round(2 * watchdog_ns)), _LONGEST_KEPT_NS)


def _groups(blames: Sequence[Blame], scene: Scene) -> list[list[Blame]]:
    most_ns = longest_ns(scene)
    groups: list[list[Blame]] = []
    until_ns = 0
    for one in blames:
        begin_ns, last_ns = _extent(one.symptom, scene)
        follows = groups and begin_ns <= until_ns
        if follows and begin_ns - time_ns(groups[-1][0].symptom) <= most_ns:
            groups[-1].append(one)
            until_ns = max(until_ns, last_ns)
        else:
            groups.append([one])
            until_ns = last_ns
    return groups


def _homes(groups: Sequence[Sequence[Blame]], scene: Scene) -> dict[int, list[Outage]]:
    """Each outage goes where it is blamed most, else to what went on while it began."""
    homes: dict[int, list[Outage]] = {place: [] for place in range(len(groups))}
    best: dict[str, tuple[float, int]] = {}
    for place, group in enumerate(groups):
        for share in (share for one in group for share in one.shares):
            known = best.get(share.outage.id)
            if known is None or share.probability > known[0]:
                best[share.outage.id] = share.probability, place
    hangs = [_hang(group, scene) for group in groups]
    for outage in scene.outages:
        at_ns = begin_ns(outage)
        meanwhile = (i for i, hang in enumerate(hangs) if hang[0] <= at_ns <= hang[1])
        home = best[outage.id][1] if outage.id in best else next(meanwhile, None)
        if home is not None:
            homes[home].append(outage)
    return homes


def _hang(group: Sequence[Blame], scene: Scene) -> Span:
    """From the first moment at which the job stood still to the last."""
    begins = [began_ns(one.symptom) for one in group]
    ends = [_extent(one.symptom, scene)[1] for one in group if isinstance(one.symptom, Stall)]
    return min(begins), max([*ends, *(time_ns(one.symptom) for one in group)])


def began_ns(symptom: Fault | Stall) -> int:
    started = None if isinstance(symptom, Stall) else symptom.started_ns
    return time_ns(symptom) if started is None else started


def _bunches(outages: Iterable[Outage], scene: Scene) -> list[list[Outage]]:
    """Outages of which the next began before traffic was back from the one before."""
    tick_ns = round(min(scene.terms.tick_seconds, 60.0) * SECOND_NS)
    most_ns = longest_ns(scene)
    found: list[list[Outage]] = []
    until_ns = 0
    for one in outages:
        begin, end = begin_ns(one), end_ns(one) or scene.until_ns
        together = found and begin <= until_ns
        if together and begin - begin_ns(found[-1][0]) <= most_ns:
            found[-1].append(one)
            until_ns = max(until_ns, end + tick_ns)
        else:
            found.append([one])
            until_ns = end + tick_ns
    return found


def _with_followers(stories: list[Story], scene: Scene) -> list[Story]:
    """What follows from an error is told with the last story that began before it."""
    found: dict[int, list[Fault]] = {}
    told = [_told_in(story) for story in stories]
    for fault in scene.faults:
        if fault.primary or fault.time_ns is None:
            continue
        span = (fault.time_ns - _reach_ns(fault), fault.time_ns + _SLACK_NS)
        places = [place for place, one in enumerate(told) if overlap(one, span)]
        if places:
            found.setdefault(places[-1], []).append(fault)
    return [
        replace(story, followers=tuple(sorted(found.get(place, ()), key=_when)))
        for place, story in enumerate(stories)
    ]


def _reach_ns(fault: Fault) -> int:
    return _SLACK_NS if fault.kind in ("port_event", "kernel") else _REACH_NS


def _told_in(story: Story) -> Span:
    """Its symptoms and outages, from the first to the last."""
    ends = [end_ns(one) or begin_ns(one) for one in story.outages]
    ends += [one.symptom.end_unix_ns or 0 for one in story.blames if isinstance(one.symptom, Stall)]
    ends += [time_ns(one.symptom) for one in story.blames]
    return story.begin_ns, max(ends)


def _when(fault: Fault) -> tuple[int, str]:
    return fault.time_ns or 0, fault.id
