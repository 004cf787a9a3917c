"""`python -m tests.bench`: what flapd takes and how fast it is, beside its budgets."""

import argparse
import sys

from rich.console import Console
from rich.table import Table

from tests.bench.commands import commands
from tests.bench.cost import whole_agent
from tests.bench.edge import edge_to_record
from tests.bench.edge_events import edge_to_record_with_events
from tests.bench.figure import FULL, TINY, Bench, Figure
from tests.bench.fleet import fleet
from tests.bench.follow import follow
from tests.bench.lateness import lateness
from tests.bench.logs import logs
from tests.bench.page import page
from tests.bench.reading import reading
from tests.bench.replaying import replay
from tests.bench.serving import metrics, page_of_history
from tests.bench.starting import starting

BENCHES: dict[str, Bench] = {
    "reading": reading,
    "commands": commands,
    "agent": whole_agent,
    "lateness": lateness,
    "edge": edge_to_record,
    "edge_events": edge_to_record_with_events,
    "metrics": metrics,
    "history": page_of_history,
    "page": page,
    "replay": replay,
    "logs": logs,
    "follow": follow,
    "start": starting,
    "fleet": fleet,
}

_NARROWEST = 150
"""A table that goes into a file has no terminal to fit."""
_HOLDS, _BROKEN, _UNMEASURED = "[green]holds[/]", "[red]broken[/]", "[yellow]not measured[/]"


def main() -> int:
    """1 where a budget is broken and that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a budget is broken")
    parser.add_argument("--tiny", action="store_true", help="shows that it works; no figures")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - BENCHES.keys()
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    figures: list[Figure] = []
    for name in arguments.names or BENCHES:
        Console(stderr=True).print(f"measuring {name} ...", highlight=False)
        figures += BENCHES[name](TINY if arguments.tiny else FULL)
    console = Console()
    console.width = max(console.width, _NARROWEST)
    console.print(table_of(figures))
    is_broken = any(figure.holds is False for figure in figures)
    return int(arguments.strict and is_broken)


def table_of(figures: list[Figure]) -> Table:
    table = Table("what", "budget", "figure", "floor", "", "note", box=None)
    for figure in figures:
        value = "-" if figure.value is None else f"{_written(figure.value)} {figure.unit}"
        row = figure.what, _budget(figure), value, figure.floor, _verdict(figure), figure.note
        table.add_row(*row)
    return table


def _budget(figure: Figure) -> str:
    if figure.budget is None:
        return ""
    return f"{'≥' if figure.at_least else '≤'} {_written(figure.budget)} {figure.unit}"


def _verdict(figure: Figure) -> str:
    if figure.value is None:
        return _UNMEASURED
    return {True: _HOLDS, False: _BROKEN, None: ""}[figure.holds]


def _written(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
