"""WatchFit: sections of a screen cut so that each is seen, and says how much of it is not. Pure."""

from collections.abc import Sequence
from typing import NamedTuple


class Line(NamedTuple):
    text: str
    style: str = ""


Entry = list[Line]
"""Lines that belong together."""


class Section(NamedTuple):
    title: str
    entries: list[Entry]

    def rows(self) -> int:
        return 1 + sum(map(len, self.entries))


def fitted(sections: Sequence[Section], rows: int) -> list[Line]:
    """At most so many lines, shared fairly; what is first comes first where there is not enough."""
    rows = max(rows, 0)
    shares = _shares([section.rows() for section in sections], rows)
    for at, section in enumerate(sections):
        # Entries are whole, so a share may have room that another can use.
        unused = rows - len(_joined(sections, shares))
        shares[at] = min(section.rows(), len(_cut(section, shares[at])) + unused)
    return _joined(sections, shares)


def _joined(sections: Sequence[Section], shares: Sequence[int]) -> list[Line]:
    pairs = zip(sections, shares, strict=True)
    return [line for section, share in pairs for line in _cut(section, share)]


def _shares(wanted: Sequence[int], rows: int) -> list[int]:
    """Each what it wants, or as much as any other gets; what is left over goes to the first."""
    shares = [0] * len(wanted)
    while rows > 0 and shares != list(wanted):
        for at, want in enumerate(wanted):
            if shares[at] < want and rows > 0:
                shares[at] += 1
                rows -= 1
    return shares


def _cut(section: Section, rows: int) -> list[Line]:
    if rows == 0:
        return []
    title = Line(section.title, "bold")
    if rows == section.rows():
        return [title, *(line for entry in section.entries for line in entry)]
    shown: list[Line] = []
    left = len(section.entries)
    for entry in section.entries:
        if len(shown) + len(entry) > rows - 2:
            break
        shown += entry
        left -= 1
    more = [Line(f"  and {left} more", "dim")] if rows > 1 else []
    return [title, *shown, *more]
