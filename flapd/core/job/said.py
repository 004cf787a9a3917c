"""Said: a message with who said it, when and where."""

import math

import msgspec

from flapd.core.job.clock import Timed
from flapd.core.job.message import Message
from flapd.model.fault import Place

LONGEST_NUMBER = 18
"""Digits."""


class Speaker(msgspec.Struct, frozen=True):
    """The process that says something, as far as the line or those before it tell."""

    rank: int | None = None
    host: str | None = None
    pid: int | None = None


class Said(msgspec.Struct, frozen=True):
    message: Message
    speaker: Speaker
    when: Timed
    place: Place
    scope: str
    """Tells apart files that have the same name, such as those of two nodes."""

    def text(self, name: str) -> str | None:
        """A field of the message."""
        return self.message.values.get(name)

    def integer(self, name: str) -> int | None:
        """None also where it is longer than any number that can be told on."""
        written = self.text(name)
        return None if written is None or len(written) > LONGEST_NUMBER else int(written)

    def count(self, name: str) -> int | None:
        """As `integer`, of what may be written as 2.56e+7."""
        written = self.text(name)
        value = math.inf if written is None else float(written)
        return int(value) if value < 10**LONGEST_NUMBER else None

    def seconds(self, name: str, parts: int = 1) -> float | None:
        """Of a field that counts `parts` of a second."""
        written = self.text(name)
        if written is None:
            return None
        seconds = float(written) / parts
        return seconds if math.isfinite(seconds) else None

    @property
    def rank(self) -> int | None:
        """In the job; the rank in a group that is the whole job is just that."""
        ranks = self.text("ranks")
        if ranks is not None and ranks.isdigit() and len(ranks) <= LONGEST_NUMBER:
            return int(ranks)
        if self.speaker.rank is not None:
            return self.speaker.rank
        message = self.message
        return message.group_rank if message.process_group == "default_pg" else None
