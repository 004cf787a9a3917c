"""`flapd flaps ID`: one outage, and what the samples around it show."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote

from flapd.cli.answers import BlackBox, FlapDetail, Interval
from flapd.cli.client import ask
from flapd.cli.flaps import came_back, cause, lasted
from flapd.cli.of_node import tells_of_many, with_node
from flapd.cli.output import Cell, Column, decoded, print_json, print_line, print_table
from flapd.cli.target import Target
from flapd.cli.text import amount, count, gpu_seconds, times
from flapd.serve.names import physical_state_text, state_text
from flapd.serve.settings import DEFAULT_PORT

MOST_CHANGES = 20
"""What changed more often in the samples moves all the time, and is only named."""

_COLUMNS = ("counter", "from", "to")
_TEXTS = {"state": state_text, "phys_state": physical_state_text}

_Value = int | float | str | None


class Change(NamedTuple):
    """From one sample that has this column to the next."""

    time: str
    column: str
    before: _Value
    after: _Value


def flap(targets: Sequence[Target], flap_id: str, as_json: bool, utc: bool) -> int:
    """The exit status."""
    body = ask(targets, f"/api/v1/flaps/{quote(flap_id, safe='')}")
    if as_json:
        print_json(body)
    else:
        item, of_many = decoded(body, FlapDetail), tells_of_many(targets)
        _show(with_node(item) if of_many else item, utc, of_many)
    return 0


def _show(item: FlapDetail, utc: bool, of_many: bool) -> None:
    print_line(f"{item.id}: {item.port}, {item.kind or 'outage'}, {item.status or 'not known'}")
    for name, said in _facts(item, utc):
        print_line(f"  {name:<11} {said}", indent=14)
    if item.black_box_data is not None and item.black_box_data.rows:
        _show_black_box(item.black_box_data, utc)
    elif of_many:
        agent = f"http://{item.node}:{DEFAULT_PORT}"
        print_line(f"Samples around it stay with its node: flapd flaps {item.id} --url {agent}")
    else:
        print_line("No samples around it are kept.")


def _facts(item: FlapDetail, utc: bool) -> Iterator[tuple[str, str]]:
    edges = [edge for edge in (item.down, item.up) if edge is not None]
    zone, moments = times(edges, utc)
    yield from zip(("down", "up"), (f"{moment} {zone}" for moment in moments), strict=False)
    yield "down for", lasted(item)
    yield "downs", count(item.count, item.count_at_least)
    yield "cause", ": ".join(cause(item))
    yield "seen", (item.seen or "not known").replace("_", " ")
    yield "layer", item.layer or "not known"
    told = {"member": item.member, "node guid": item.guid, "rate after": came_back(item)}
    yield from ((name, value) for name, value in told.items() if value)
    if item.incidents:
        yield "incidents", ", ".join(item.incidents)
    if item.gpu_seconds is not None:
        low, high = (amount(end) for end in (item.gpu_seconds.low, item.gpu_seconds.high))
        yield "lost", f"{gpu_seconds(item.gpu_seconds)} ({low} to {high})"
    yield "evidence", ", ".join(item.evidence) or "not known"


def _show_black_box(box: BlackBox, utc: bool) -> None:
    lacking = ", more of them to come" if box.pending else ""
    lacking += ", some of them lost" if box.incomplete else ""
    print_line(f"{len(box.rows)} samples around it{lacking}; --json has all")
    changed = changes(box)
    often = {name for name, moves in changed.items() if len(moves) > MOST_CHANGES}
    rare = [move for name, moves in changed.items() if name not in often for move in moves]
    rare.sort(key=lambda move: move.time)
    if rare:
        zone, moments = times([_at(move.time) for move in rare], utc)
        columns = [Column(f"changed ({zone})", is_whole=True), *map(Column, _COLUMNS)]
        print_table(columns, [_row(*pair) for pair in zip(rare, moments, strict=True)])
    else:
        print_line("Nothing changed in them but what moves all the time.")
    if often:
        print_line(f"moves all the time: {', '.join(sorted(often))}", indent=2)


def changes(box: BlackBox) -> dict[str, list[Change]]:
    """By column, in order of time; a column that a sample does not have is passed over."""
    found: dict[str, list[Change]] = {name: [] for name in box.columns[1:]}
    last: dict[str, _Value] = {}
    for at, *values in box.rows:
        for name, value in zip(found, values, strict=False):
            if value is None:
                continue
            if name in last and last[name] != value:
                found[name].append(Change(str(at), name, last[name], value))
            last[name] = value
    return found


def _row(change: Change, moment: str) -> list[Cell]:
    before, after = (_told(change.column, value) for value in (change.before, change.after))
    at, _, zone = moment.partition(" ±")
    zone = zone.partition(" ")[2]
    return [Cell(f"{at} {zone}".rstrip()), Cell(change.column), Cell(before), Cell(after)]


def _told(column: str, value: _Value) -> str:
    text = _TEXTS.get(column)
    return str(text(value) if text is not None and isinstance(value, int) else value)


def _at(moment: str) -> Interval:
    return Interval(moment, moment)
