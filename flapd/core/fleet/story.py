"""FleetStory: what becomes one incident of a fleet: a job's story, or all that one cause hit."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import blake2b

from flapd.core.fleet.memory import FleetMemory
from flapd.core.fleet.shared import Shared
from flapd.core.incident.evidence import begin_ns
from flapd.core.incident.losses import BLAMED
from flapd.core.incident.story import Story
from flapd.core.incident.verdict import verdict_of
from flapd.model.incident import Incident

SHARED_PLACE = "\1"
"""Begins the places of what has a shared cause; no job and no node begins so."""


class FleetStory:
    """Its id is that of the earliest thing in it, as its node dated that: no estimate moves it."""

    def __init__(
        self,
        place: str,
        stories: Sequence[Story],
        memory: FleetMemory,
        shared: Shared | None = None,
        parts: Sequence["FleetStory"] = (),
    ) -> None:
        """`place` is where it was found: a job, a node, or what is shared."""
        self.job_name = place
        self.stories = tuple(stories)
        self.shared = shared
        self.parts = tuple(parts)
        """What it would be without the shared cause."""
        self.told: Incident | None = None
        """As it was worked out last; it stays so while nothing is new."""
        self._memory = memory

    def settled(self) -> "FleetStory":
        """Itself, of one story: what fails when it is asked for fails here already."""
        _ = self.suspects, self.id, self.begin_ns
        return self

    @property
    def places(self) -> Iterable[str]:
        """Whose evidence it is made of."""
        return {self.job_name, *(part.job_name for part in self.parts)}

    @cached_property
    def suspects(self) -> tuple[str, ...]:
        """Outages that all of it may come of; empty: it has another cause, or none is known."""
        (story,) = self.stories
        if not story.blames:
            return tuple(one.id for one in story.outages)
        top = None if story.decisive is None else story.decisive.top
        return () if top is None or verdict_of(story) not in BLAMED else (top.outage.id,)

    @property
    def outages(self) -> Iterable[str]:
        return (one.id for story in self.stories for one in story.outages)

    @cached_property
    def members(self) -> list[str]:
        """Ids of all that is told in it."""
        found = {name for story in self.stories for name in _members_of(story)}
        return list(found | {one.id for one in (self.shared.outages if self.shared else ())})

    @cached_property
    def id(self) -> str:
        dated = ((self._memory.dated_ns(name), name) for name in self.members)
        _, first = min((at_ns, name) for at_ns, name in dated if at_ns is not None)
        return _name(self.job_name, first)

    @cached_property
    def names(self) -> frozenset[str]:
        own = (_name(self.job_name, member) for member in self.members)
        return frozenset(own).union(*(part.names for part in self.parts))

    @cached_property
    def begin_ns(self) -> int:
        begins = [story.begin_ns for story in self.stories]
        begins += [begin_ns(self.shared.outages[0])] if self.shared else []
        return min(begins)


def shared_place(shared: Shared) -> str:
    return f"{SHARED_PLACE}{shared.key}"


def _members_of(story: Story) -> Iterable[str]:
    yield from story.members
    for one in story.blames:
        yield from (other.id for other in story.scene.alike.get(one.symptom.id, ()))


def _name(place: str, first: str) -> str:
    whose = SHARED_PLACE if place.startswith(SHARED_PLACE) else place
    said = f"fleet|{whose}|{first}"
    return "incident-" + blake2b(said.encode(), digest_size=8).hexdigest()
