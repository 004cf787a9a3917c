"""Told: one revision of something, when and by which node it is told."""

from typing import NamedTuple

from flapd.model.event import Event


class Told(NamedTuple):
    """`at` is seconds from the origin, of a clock that is right."""

    at: float
    event: Event
