"""Pages: a list of the API, followed over as many pages as it takes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from flapd.cli.client import ask
from flapd.cli.output import decoded, note, print_json
from flapd.cli.target import Target

LARGEST_PAGE = 1000


class Page(msgspec.Struct):
    """Items as the agent wrote them: another version may have fields that this one does not."""

    items: list[msgspec.Raw]
    next: str | None = None


class Fetched(NamedTuple):
    pages: list[bytes]
    """Whole answers, in their order."""
    raw: list[msgspec.Raw]
    next: str | None
    """Where those go on that were not fetched; None = these are all."""


def fetch(targets: Sequence[Target], path: str, filters: Mapping[str, str], most: int) -> Fetched:
    """The newest, page by page, until there are no more or so many."""
    pages: list[bytes] = []
    raw: list[msgspec.Raw] = []
    cursor: str | None = None
    while True:
        limit = str(min(most - len(raw), LARGEST_PAGE))
        place = {} if cursor is None else {"cursor": cursor}
        body = ask(targets, path, {**filters, "limit": limit, **place})
        page = decoded(body, Page)
        pages.append(body)
        raw += page.items
        cursor = page.next
        if cursor is None or not page.items or len(raw) >= most:
            return Fetched(pages, raw[:most], cursor)


def print_fetched(fetched: Fetched) -> None:
    """As one list of JSON."""
    print_json(msgspec.json.encode(Page(fetched.raw, fetched.next)))


def note_more(is_more: bool, most: int) -> None:
    if is_more:
        note(f"these are the newest {most}: there are more; raise --limit or give --until")
