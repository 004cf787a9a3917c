"""Part: what the engine is made of besides the fabric."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from flapd.model.event import Event


class Part(Protocol):
    """Hears what earlier parts tell in a step, then takes the observation itself."""

    @property
    def takes(self) -> Mapping[type, Callable[[Any], list[Event]]]:
        """By the type of the observation; what it tells follows what earlier parts told."""

    @property
    def record(self) -> Any:
        """All that another of its kind needs to go on: the checkpoint holds just this."""

    def hears(self, events: Sequence[Event]) -> list[Event]:
        """What earlier parts told in this step, if anything; what it tells of it follows."""
