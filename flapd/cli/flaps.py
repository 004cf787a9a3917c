"""`flapd flaps`: the outages there were."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from flapd.cli.client import Target, ask
from flapd.cli.output import Cell, Column, decoded, note, print_json, print_table
from flapd.cli.text import count, span, times
from flapd.serve.items import FlapItem, FlapList

LARGEST_PAGE = 1000

_LASTED = {"open": "still down", "lost": "end unknown"}


class _Page(msgspec.Struct):
    """Items as the agent wrote them: another version may have fields that this one does not."""

    items: list[msgspec.Raw]
    next: str | None = None


class Found(NamedTuple):
    items: list[FlapItem]
    raw: list[msgspec.Raw]
    next: str | None
    """Where those go on that were not fetched; None = these are all."""


def flaps(
    targets: Sequence[Target], filters: Mapping[str, str], most: int, as_json: bool, utc: bool
) -> int:
    """The exit status; `filters` are those of the API."""
    found = fetch_flaps(targets, filters, most)
    if as_json:
        print_json(msgspec.json.encode(_Page(found.raw, found.next)))
    else:
        print_flaps(found.items, utc)
    if found.next is not None:
        note(f"these are the newest {most}: there are more; raise --limit or give --until")
    return 0


def fetch_flaps(targets: Sequence[Target], filters: Mapping[str, str], most: int) -> Found:
    """The newest, page by page, until there are no more or so many."""
    raw: list[msgspec.Raw] = []
    items: list[FlapItem] = []
    cursor: str | None = None
    while True:
        limit = str(min(most - len(raw), LARGEST_PAGE))
        place = {} if cursor is None else {"cursor": cursor}
        body = ask(targets, "/api/v1/flaps", {**filters, "limit": limit, **place})
        page = decoded(body, _Page)
        items += decoded(body, FlapList).items
        raw += page.items
        cursor = page.next
        if cursor is None or not page.items or len(raw) >= most:
            return Found(items[:most], raw[:most], cursor)


def print_flaps(items: Sequence[FlapItem], utc: bool) -> None:
    """A table, or a sentence where there are none."""
    if not items:
        print("No flaps: no outage matches.")
        return
    zone, moments = times([item.down for item in items], utc)
    columns = [
        Column(f"down ({zone})", is_number=True, is_whole=True),
        Column("port"),
        Column("down for", is_number=True),
        Column("downs", is_number=True),
        Column("cause"),
        Column("seen"),
    ]
    rows = [_row(item, moment) for item, moment in zip(items, moments, strict=True)]
    if any(item.after is not None for item in items):
        columns.append(Column("rate after", is_number=True))
        rows = [[*row, _rate(item)] for row, item in zip(rows, items, strict=True)]
    print_table(columns, rows)
    waiting = sum(not item.durable for item in items)
    if waiting:
        note(f"{waiting} of these are not on disk yet: the history cannot be written")


def _row(item: FlapItem, moment: str) -> list[Cell]:
    return [
        Cell(moment),
        Cell(item.port if item.member is None else f"{item.port}\n{item.member}"),
        Cell(_lasted(item), "bold red" if item.status == "open" else ""),
        Cell(count(item.count, item.count_at_least)),
        Cell(_cause(item)),
        Cell(item.seen.replace("_", " ")),
    ]


def _lasted(item: FlapItem) -> str:
    lasted = _LASTED.get(item.status) or span(item.down_seconds)
    return f"{lasted}\ndrop" if item.kind == "drop" else lasted


def _cause(item: FlapItem) -> str:
    """With what module or kernel said of it, and whether it was soon after a boot."""
    cause = item.cause.replace("_", " ")
    told = f"{cause}, boot" if item.grace and item.cause != "boot" else cause
    return f"{told}\n{item.reason}" if item.reason else told


def _rate(item: FlapItem) -> Cell:
    if item.after is None:
        return Cell("")
    rate = f"{item.after.rate_gbps:g} Gb/s"
    return Cell(f"{rate}, slower", "yellow") if item.after.downgraded else Cell(rate)
