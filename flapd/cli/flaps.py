"""`flapd flaps`: the outages there were."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from flapd.cli.answers import FlapAnswer, FlapsAnswer, PortsAnswer
from flapd.cli.client import ask
from flapd.cli.of_node import tells_of_many, with_node
from flapd.cli.output import Cell, Column, decoded, note, print_table
from flapd.cli.pages import Fetched, fetch, note_more, print_fetched
from flapd.cli.target import Target
from flapd.cli.text import count, gpu_seconds, span, times
from flapd.model.errors import FlapdError

_LASTED = {"open": "still down", "lost": "end unknown"}


class Found(NamedTuple):
    items: list[FlapAnswer]
    fetched: Fetched


def flaps(
    targets: Sequence[Target], filters: Mapping[str, str], most: int, as_json: bool, utc: bool
) -> int:
    """The exit status; `filters` are those of the API."""
    found = fetch_flaps(targets, filters, most)
    if not found.items and "port" in filters:
        _refuse_unknown(targets, filters["port"])
    if as_json:
        print_fetched(found.fetched)
    else:
        is_fleet = bool(found.items) and tells_of_many(targets)
        print_flaps([with_node(one) for one in found.items] if is_fleet else found.items, utc)
    note_more(found.fetched.next is not None, most)
    return 0


def _refuse_unknown(targets: Sequence[Target], port: str) -> None:
    """Nothing of a port that there is and nothing of a slip of the pen are two things."""
    listed = decoded(ask(targets, "/api/v1/ports?limit=1000"), PortsAnswer)
    known = list(dict.fromkeys(item.port for item in listed.items))
    if listed.next is None and port not in known:
        raise FlapdError(f"--port {port}: there is no such port; known are: {', '.join(known)}")


def fetch_flaps(targets: Sequence[Target], filters: Mapping[str, str], most: int) -> Found:
    """The newest, page by page, until there are no more or so many."""
    fetched = fetch(targets, "/api/v1/flaps", filters, most)
    items = [item for body in fetched.pages for item in decoded(body, FlapsAnswer).items]
    return Found(items[:most], fetched)


def print_flaps(items: Sequence[FlapAnswer], utc: bool) -> None:
    """A table, or a sentence where there are none."""
    if not items:
        print("No flaps: no outage matches.")
        return
    zone, moments = times([item.down for item in items], utc)
    columns = [
        Column(f"down ({zone})", is_whole=True),
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


def _row(item: FlapAnswer, moment: str) -> list[Cell]:
    return [
        Cell(f"{moment}\n{item.id}"),
        Cell(item.port if item.member is None else f"{item.port}\n{item.member}"),
        Cell(_lasted(item), "bold red" if item.status == "open" else ""),
        Cell(count(item.count, item.count_at_least)),
        Cell("\n".join(cause(item))),
        Cell((item.seen or "not known").replace("_", " ")),
    ]


def _lasted(item: FlapAnswer) -> str:
    lost = gpu_seconds(item.gpu_seconds)
    told = [lasted(item), "drop" if item.kind == "drop" else "", lost and f"{lost} lost"]
    return "\n".join(filter(None, told))


def lasted(item: FlapAnswer) -> str:
    return _LASTED.get(item.status or "") or span(item.down_seconds)


def cause(item: FlapAnswer) -> list[str]:
    """And whether it was soon after a boot; then what module or kernel said of it."""
    told = (item.cause or "not known").replace("_", " ")
    if item.grace and item.cause != "boot":
        told += ", boot"
    return [told, item.reason] if item.reason else [told]


def came_back(item: FlapAnswer) -> str:
    """At which rate; "" where that is not known."""
    if item.after is None:
        return ""
    rate = f"{item.after.rate_gbps:g} Gb/s"
    return f"{rate}, slower" if item.after.downgraded else rate


def _rate(item: FlapAnswer) -> Cell:
    slower = item.after is not None and item.after.downgraded
    return Cell(came_back(item), "yellow" if slower else "")
