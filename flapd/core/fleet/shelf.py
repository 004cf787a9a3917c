"""Shelf: the newest revision of each thing of one kind, found by its id or by where it belongs."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from flapd.model.event import Outage
from flapd.model.fault import Fault
from flapd.model.job import Job
from flapd.model.stall import Stall

_Item = TypeVar("_Item", Outage, Fault, Stall, Job)


class Shelf(Generic[_Item]):
    """What it holds in the end follows from the set of what was put there."""

    def __init__(self, place_of: Callable[[_Item], str]) -> None:
        self.items: dict[str, _Item] = {}
        self._place_of: Callable[[_Item], str] = place_of
        self._at: dict[str, dict[str, None]] = {}

    def put(self, item: _Item) -> _Item | None:
        """What was there before, or the item itself where it is new; None where it is no news."""
        known = self.items.get(item.id)
        # Several nodes may tell of one thing in the same revision.
        if known is not None and (known.revision, known.node) >= (item.revision, item.node):
            return None
        if known is not None:
            self.remove(item.id)
        self.items[item.id] = item
        self._at.setdefault(self._place_of(item), {})[item.id] = None
        return item if known is None else known

    def remove(self, name: str) -> None:
        place = self._place_of(self.items.pop(name))
        del self._at[place][name]
        if not self._at[place]:
            del self._at[place]

    def at(self, place: str) -> Iterable[_Item]:
        """In no order."""
        return [self.items[name] for name in self._at.get(place, ())]

    def places(self) -> Iterable[str]:
        return self._at.keys()
