"""`flapd flaps`: the outages there were."""

from collections.abc import Mapping, Sequence

from flapd.cli.client import Target, ask
from flapd.cli.output import Cell, Column, decoded, note, print_json, print_table
from flapd.cli.text import count, moment, span
from flapd.serve.items import FlapItem, FlapList

_COLUMNS = (
    Column("down (UTC)", is_number=True, is_whole=True),
    Column("port"),
    Column("lasted", is_number=True),
    Column("downs", is_number=True),
    Column("kind"),
    Column("cause"),
    Column("seen"),
)
_LASTED = {"open": "still down", "lost": "end unknown"}


def flaps(targets: Sequence[Target], filters: Mapping[str, str], as_json: bool) -> int:
    """The exit status; `filters` are those of the API."""
    body = ask(targets, "/api/v1/flaps", filters)
    if as_json:
        print_json(body)
        return 0
    page = decoded(body, FlapList)
    print_flaps(page.items)
    if page.next is not None:
        note("there are older ones: raise --limit (up to 1000) or give --until")
    return 0


def print_flaps(items: Sequence[FlapItem]) -> None:
    """A table, or a sentence where there are none."""
    if not items:
        print("No flaps: no outage matches.")
        return
    print_table(_COLUMNS, [_row(item) for item in items])


def _row(item: FlapItem) -> list[Cell]:
    lasted = _LASTED.get(item.status) or span(item.down_seconds)
    return [
        Cell(moment(item.down)),
        Cell(item.port),
        Cell(lasted, "bold red" if item.status == "open" else ""),
        Cell(count(item.count, item.count_at_least)),
        Cell(item.kind, "yellow" if item.kind == "drop" else ""),
        Cell(item.cause),
        Cell(item.seen.replace("_", " ")),
    ]
