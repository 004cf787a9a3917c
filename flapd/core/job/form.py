"""Form: one kind of message, how it is recognised and what can be read in it."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from flapd.model.fault import FaultKind
from flapd.model.finding import NoteKind


class Form(msgspec.Struct, frozen=True):
    """`needle` stands in every message of this form, `head` tells that it is one.

    What follows the head may be cut off or overwritten at any place by another process, so each
    field is looked for by itself.
    """

    name: str
    kind: FaultKind | NoteKind | Literal["unknown"]
    needle: str
    head: re.Pattern[str]
    fields: tuple[re.Pattern[str], ...] = ()
    families: tuple[tuple[str, re.Pattern[str]], ...] = ()
    """Which releases print it so: the first whose pattern is found."""
    consequence: bool = False
    fallback: bool = False
    """It counts only where nothing else was found in the message."""

    def found_in(self, message: str) -> Iterator[tuple[int, int]]:
        """Where each of its heads begins and ends, in a message that holds the needle."""
        return (match.span() for match in self.head.finditer(message))

    def read(self, message: str) -> dict[str, str]:
        """The fields that are there, by name; `message` begins with the head."""
        values: dict[str, str] = {}
        head = self.head.search(message)
        for found in (head, *(field.search(message) for field in self.fields)):
            if found is not None:
                told = {key: value.strip() for key, value in found.groupdict().items() if value}
                values = told | values
        return values

    def family(self, message: str) -> str | None:
        return next((tag for tag, mark in self.families if mark.search(message)), None)


def form(
    name: str,
    kind: FaultKind | NoteKind | Literal["unknown"],
    needle: str,
    head: str | None = None,
    *fields: str,
    families: Sequence[tuple[str, str]] = (),
    consequence: bool = False,
    fallback: bool = False,
) -> Form:
    """Compiles it; without a head the needle is all of it."""
    return Form(
        name,
        kind,
        needle,
        _compiled(re.escape(needle) if head is None else head),
        tuple(map(_compiled, fields)),
        tuple((tag, _compiled(mark)) for tag, mark in families),
        consequence,
        fallback,
    )


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)
