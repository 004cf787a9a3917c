"""Telling: which incidents were told, what of that is no longer true, and what is counted."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from flapd.core.incident.losses import BLAMED
from flapd.core.incident.sayings import A_PAUSE, NOTHING
from flapd.core.incident.view import Claim, IncidentTotals
from flapd.core.incident.words import tells_a_time
from flapd.model.incident import Incident

_GROWTH = 1.2
"""A loss that goes on is told again when it has grown so much."""


class Told(msgspec.Struct):
    incident: Incident
    """Its last revision."""
    members: list[str] = []
    """Ids of all that was told in it."""
    counted: bool = False
    """It is in the totals, or what it was before is."""
    is_superseded: bool = False
    """Another was told that holds what it was made of; it may come back."""
    is_withdrawn: bool = False


class Tellable(Protocol):
    """What becomes one incident."""

    @property
    def id(self) -> str: ...
    @property
    def names(self) -> frozenset[str]:
        """Every id that it would have if less of it were known."""

    @property
    def members(self) -> list[str]:
        """Ids of all that is told in it."""

    @property
    def begin_ns(self) -> int: ...
    @property
    def job_name(self) -> str: ...


_Story = TypeVar("_Story", bound=Tellable)


class Telling(Generic[_Story]):
    """Keeps revisions; a told incident that is none any more is superseded or withdrawn.

    Where `incident_of` has None, what was told stays. `count` is called once with each incident
    that is over.
    """

    def __init__(
        self,
        told: dict[str, Told],
        incident_of: Callable[[_Story], Incident | None],
        count: Callable[[Incident], None],
    ) -> None:
        self._told, self._incident_of, self._count_over = told, incident_of, count

    def tell(
        self,
        stories: Iterable[_Story],
        names: Container[str],
        affected: Container[str],
        pauses: Collection[str],
        final_ns: int,
    ) -> list[Incident]:
        """What is new or revised, of all stories of these jobs as they are now.

        Of those that are not `affected` only time has passed: what is over stays as it is, as
        does what began before `final_ns` and was told to be over. `pauses` are stalls that have
        turned out to be ordinary.
        """
        now = {story.id: story for story in stories}
        gone = {
            name: told
            for name, told in self._told.items()
            if name not in now
            and (told.incident.job or "") in names
            and (told.incident.begin_unix_ns >= final_ns or told.incident.open)
        }
        events = [
            incident
            for story in now.values()
            if self._may_change(story, affected, final_ns)
            for incident in self._one(story, gone, now)
        ]
        for told in gone.values():
            events += (
                self._let_go(told, now)
                if told.is_superseded
                else self._withdrawn(told, now, pauses)
            )
        return events

    def open(self) -> list[Incident]:
        told = (one for one in self._told.values() if not one.is_superseded)
        return [one.incident for one in told if one.incident.open]

    def forget(self, cutoff_ns: int) -> None:
        for name in [*self._told]:
            told = self._told[name]
            is_over = told.is_superseded or not told.incident.open
            if is_over and told.incident.begin_unix_ns < cutoff_ns:
                del self._told[name]

    def _may_change(self, story: _Story, affected: Container[str], final_ns: int) -> bool:
        told = self._told.get(story.id)
        if told is not None and told.incident.open and not told.is_superseded:
            return True
        if story.begin_ns < final_ns:
            return story.names.isdisjoint(self._told)
        return told is None or told.is_superseded or story.job_name in affected

    def _one(
        self, story: _Story, gone: Mapping[str, Told], now: Collection[str]
    ) -> Iterator[Incident]:
        """The next revision of one, if there is one."""
        told, incident = self._told.get(story.id), self._incident_of(story)
        if incident is None:
            return
        members = story.members
        became = {
            name: one
            for name, one in sorted(gone.items())
            if name in story.names or not set(members).isdisjoint(one.members)
        }
        for one in became.values():
            one.is_superseded = True
        before = () if told is None else told.incident.supersedes
        supersedes = tuple(name for name in dict.fromkeys([*before, *became]) if name not in now)
        incident = replace(incident, supersedes=supersedes)
        if told is None:
            told = self._told[story.id] = Told(replace(incident, revision=1), members)
        elif told.is_superseded or differs(told.incident, incident):
            told.incident = replace(incident, revision=told.incident.revision + 1)
        else:
            return
        told.is_superseded, told.is_withdrawn, told.members = False, False, members
        told.counted |= any(one.counted for one in became.values())
        self._count(told)
        yield told.incident

    def _let_go(self, told: Told, now: Collection[str]) -> Iterator[Incident]:
        """One that is superseded itself must not hide what came back."""
        supersedes = tuple(name for name in told.incident.supersedes if name not in now)
        if supersedes != told.incident.supersedes:
            revision = told.incident.revision + 1
            told.incident = replace(told.incident, revision=revision, supersedes=supersedes)
            yield told.incident

    def _withdrawn(
        self, told: Told, now: Collection[str], pauses: Collection[str]
    ) -> Iterator[Incident]:
        """What it was made of turned out to be something else."""
        before = told.incident
        supersedes = tuple(name for name in before.supersedes if name not in now)
        if told.is_withdrawn and before.supersedes == supersedes:
            return
        is_pause = not set(told.members).isdisjoint(pauses)
        why = A_PAUSE if is_pause else NOTHING
        told.is_withdrawn = True
        told.incident = replace(
            before,
            revision=before.revision + 1,
            open=False,
            end_unix_ns=before.end_unix_ns or before.begin_unix_ns,
            verdict="not_fabric" if is_pause else "unknown",
            regime=None,
            regimes={},
            causes=(),
            lost_seconds=None,
            parts=None,
            assumed_share=None,
            gpu_seconds=None,
            cost=None,
            explanation=(*filter(tells_a_time, before.explanation), why),
            advice=(),
            another_cause=None,
            supersedes=supersedes,
            flap_gpu_seconds={},
            flaps=(),
        )
        self._count(told)
        yield told.incident

    def _count(self, told: Told) -> None:
        """Once, when it is over."""
        incident = told.incident
        if incident.open or told.counted:
            return
        told.counted = True
        self._count_over(incident)


def is_withdrawn(incident: Incident) -> bool:
    """It says so."""
    return not {A_PAUSE, NOTHING}.isdisjoint(incident.explanation)


def count(incident: Incident, node: str, totals: IncidentTotals) -> None:
    """One that is over, and what it cost by flaps of this node."""
    totals.incidents[incident.verdict] += 1
    if incident.verdict not in BLAMED or incident.regime is None:
        return
    for cause in incident.causes:
        loss = incident.flap_gpu_seconds.get(cause.flap)
        if loss is None or cause.node != node:
            continue
        claim = Claim(loss.likely, loss.low)
        if claim.is_finite:
            regimes = totals.claims.setdefault(cause.port, {})
            regimes[incident.regime] = regimes.get(incident.regime, Claim()) + claim


def differs(told: Incident, now: Incident) -> bool:
    """A reader would see something new; what only grows while it goes on is told now and then."""
    now = replace(now, revision=told.revision)
    if told == now:
        return False
    return not now.open or _outline(told) != _outline(now) or _has_grown(told, now)


def _outline(incident: Incident) -> Incident:
    """All but the numbers that follow the clock."""
    return replace(
        incident,
        regimes={},
        causes=tuple(
            replace(one, probability=round(one.probability, 1), chance=round(one.chance, 2))
            for one in incident.causes
        ),
        lost_seconds=None,
        parts=None,
        assumed_share=None,
        gpu_seconds=None,
        cost=None,
        explanation=(),
        flap_gpu_seconds={},
    )


def _has_grown(told: Incident, now: Incident) -> bool:
    if told.lost_seconds is None or now.lost_seconds is None:
        return told.lost_seconds is not now.lost_seconds
    before, after = told.lost_seconds.likely, now.lost_seconds.likely
    return after > _GROWTH * before or before > _GROWTH * after
