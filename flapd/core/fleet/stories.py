"""Stories: all that happened in a fleet as far as it is known, worked out anew where it changes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from flapd.core.fleet.memory import NODE_PLACE
from flapd.core.fleet.scenes import Around, scene_of_shared, scenes_of_job, scenes_of_node
from flapd.core.fleet.shared import Downs, Shared
from flapd.core.fleet.story import SHARED_PLACE, FleetStory, shared_place
from flapd.core.fleet.topology import Topology
from flapd.core.incident.scene import Scene
from flapd.core.incident.story import stories_of

_T = TypeVar("_T")


class Stories:
    def __init__(self) -> None:
        self.downs = Downs()
        self.all: list[FleetStory] = []
        """As of the last time."""
        self._by_place: dict[str, list[FleetStory]] = {}
        """One for each story of a job or a node."""
        self._wholes: dict[str, FleetStory] = {}
        """By what is shared."""
        self._shared: dict[str, Shared] = {}
        self.shared_of: dict[str, Shared] = {}
        """By id of an outage."""
        self.left_out: list[tuple[str, Exception]] = []
        """Places where working out failed, a fault of ours: what was known of them stays."""

    def share(self, topology: Topology) -> set[str]:
        """Finds what went down together; the ids of outages whose part in it is another now."""
        before, found = self._shared, self.downs.shared(topology)
        self._shared = {
            one.key: before[one.key] if before.get(one.key) == one else one for one in found
        }
        was, is_now = _without(before, self._shared), _without(self._shared, before)
        # Who answers questions reads it meanwhile.
        self.shared_of.update(is_now)
        for name in was.keys() - is_now.keys():
            del self.shared_of[name]
        return _moved(was, is_now)

    def work_out(self, places: set[str], around: Around) -> set[str]:
        """What is known of these places; where anything may have changed."""
        for place in places:
            self.attempt(place, partial(self._renew, place, around))
        alone, parts = self._sorted_out()
        hit = {outage for one in alone for outage in one.outages}
        before, self._wholes = self._wholes, {}
        for key, shared in self._shared.items():
            # Where jobs have other causes, it is told beside those.
            if parts[key] or hit.isdisjoint(one.id for one in shared.outages):
                of_it = partial(_whole, shared, parts[key], before.get(key), places, around)
                whole = self.attempt(shared_place(shared), of_it)
                if whole is not None:
                    self._wholes[key] = whole
        changed = {one.job_name for key, one in self._wholes.items() if before.get(key) is not one}
        self.all = [*alone, *self._wholes.values()]
        return places | changed

    def attempt(self, place: str, work: Callable[[], _T]) -> _T | None:
        """None where it fails: that must not keep all other places from being told of."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - a fault of ours, whose trace the pump tells
            self.left_out.append((place, error))
            return None

    def _renew(self, place: str, around: Around) -> None:
        found = (one for scene in _scenes(place, around) for one in stories_of(scene))
        stories = [FleetStory(place, [one], around.memory).settled() for one in found]
        if stories:
            self._by_place[place] = stories
        else:
            self._by_place.pop(place, None)

    def _sorted_out(self) -> tuple[list[FleetStory], dict[str, list[FleetStory]]]:
        """Stories with a cause of their own, and those of each shared one."""
        alone: list[FleetStory] = []
        parts: dict[str, list[FleetStory]] = {key: [] for key in self._shared}
        for place in sorted(self._by_place):
            for one in self._by_place[place]:
                found = (self.shared_of[name] for name in one.suspects if name in self.shared_of)
                shared = next(found, None)
                (alone if shared is None else parts[shared.key]).append(one)
        return alone, parts

    def open_places(self) -> set[str]:
        """Where something goes on that was told."""
        going_on = (one for one in self.all if one.told is not None and one.told.open)
        return {place for one in going_on for place in one.places}

    def keep(self, stays: Iterable[FleetStory]) -> None:
        """What is forgotten is not told any more."""
        self.all = [*stays]
        left = {id(one) for one in self.all} | {id(part) for one in self.all for part in one.parts}
        by_place = {
            place: [one for one in found if id(one) in left]
            for place, found in self._by_place.items()
        }
        self._by_place = {place: found for place, found in by_place.items() if found}


def _scenes(place: str, around: Around) -> Iterable[Scene]:
    if place.startswith(NODE_PLACE):
        return scenes_of_node(place.removeprefix(NODE_PLACE), around)
    return () if place.startswith(SHARED_PLACE) else scenes_of_job(place, around)


def _whole(
    shared: Shared,
    parts: list[FleetStory],
    before: FleetStory | None,
    places: set[str],
    around: Around,
) -> FleetStory:
    """All stories of one cause as one; where it hit none, that of its outages alone."""
    place = shared_place(shared)
    if (
        before is not None
        and before.shared is shared
        and before.parts == tuple(parts)
        and place not in places
    ):
        return before
    stories = [story for part in parts for story in part.stories]
    if not stories:
        stories = stories_of(scene_of_shared(shared, around))
    return FleetStory(place, stories, around.memory, shared, parts)


def _without(some: Mapping[str, Shared], others: Mapping[str, Shared]) -> dict[str, Shared]:
    """By id of an outage, what is shared of these and is not among the others."""
    found = (one for key, one in some.items() if others.get(key) is not one)
    return {outage.id: one for one in found for outage in one.outages}


def _moved(before: Mapping[str, Shared], now: Mapping[str, Shared]) -> set[str]:
    """Outages that are shared now and were not, or the other way round, or with others."""
    turned = before.keys() ^ now.keys()
    pairs = {(before[name].key, now[name].key) for name in before.keys() & now.keys()}
    regrouped = set(_several(old for old, _ in pairs)) | set(_several(new for _, new in pairs))
    return turned | {
        name
        for name in before.keys() & now.keys()
        if not regrouped.isdisjoint((before[name].key, now[name].key))
    }


def _several(keys: Iterable[str]) -> Iterator[str]:
    """Those that come more than once."""
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            yield key
        seen.add(key)
