"""`flapd incidents`: what hurt jobs."""

from collections.abc import Mapping, Sequence

from flapd.cli.answers import Interval
from flapd.cli.incident_words import VERDICT_STYLES, certainty, money, suspects_of
from flapd.cli.job_answers import IncidentAnswer, IncidentsAnswer
from flapd.cli.of_node import of_fleet
from flapd.cli.output import Cell, Column, decoded, note, print_table
from flapd.cli.pages import fetch, note_more, print_fetched
from flapd.cli.target import Target
from flapd.cli.text import amount, gpu_seconds, times
from flapd.serve.incident_words import words

_COLUMNS = (
    Column("job"),
    Column("verdict", is_whole=True),
    Column("ports"),
    Column("became of it", is_whole=True),
    Column("lost by each", is_number=True, is_whole=True),
    Column("in all", is_number=True, is_whole=True),
)


def incidents(
    targets: Sequence[Target], filters: Mapping[str, str], most: int, as_json: bool, utc: bool
) -> int:
    """The exit status; `filters` are those of the API."""
    fetched = fetch(targets, "/api/v1/incidents", filters, most)
    if as_json:
        print_fetched(fetched)
    else:
        items = [one for body in fetched.pages for one in decoded(body, IncidentsAnswer).items]
        _print([of_fleet(one) for one in items[:most]], utc)
    note_more(fetched.next is not None, most)
    return 0


def _print(items: Sequence[IncidentAnswer], utc: bool) -> None:
    if not items:
        print("No incidents: nothing that matches hurt a job that flapd knows of.")
        return
    begun = [Interval(item.begin, item.begin) for item in items if item.begin is not None]
    zone, moments = times(begun, utc)
    told = iter(moments)
    rows = [
        [Cell(_began(item, "not known" if item.begin is None else next(told))), *_row(item)]
        for item in items
    ]
    print_table([Column(f"began ({zone})", is_whole=True), *_COLUMNS], rows)
    waiting = sum(not item.durable for item in items)
    if waiting:
        note(f"{waiting} of these are not on disk yet: the history cannot be written")


def _began(item: IncidentAnswer, moment: str) -> str:
    at, _, zone = moment.partition(" ±")
    return f"{at[:-2]} {zone.partition(' ')[2]}".rstrip() + f"\n{item.id}"


def _row(item: IncidentAnswer) -> list[Cell]:
    state = "\ngoes on" if item.open else ""
    told = f"{words(item.verdict)}\n{certainty(item)}".rstrip()
    return [
        Cell(item.job or "none"),
        Cell(told, VERDICT_STYLES.get(item.verdict, "")),
        Cell("\n".join(suspects_of(item)) or "-"),
        Cell((words(item.regime) if item.regime else "-") + state),
        Cell(_lost(item)),
        Cell("\n".join(filter(None, [gpu_seconds(item.gpu_seconds), money(item.cost)])) or "-"),
    ]


def _lost(item: IncidentAnswer) -> str:
    lost = item.lost_seconds
    if lost is None:
        return "not known"
    gpus = "" if item.affected_gpus is None else f"\nx {item.affected_gpus:,} GPUs"
    return "endless" if lost.likely is None else f"{amount(lost.likely, 1)} s{gpus}"
