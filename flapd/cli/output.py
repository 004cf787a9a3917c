"""Output: tables that fit 100 columns, and JSON."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from flapd.cli.text import printable
from flapd.model.errors import CouldNotFindOutError

WIDTH = 100

_T = TypeVar("_T")


class Column(NamedTuple):
    title: str
    is_number: bool = False
    is_whole: bool = False
    """Others are broken into lines first, where there is no room."""


class Cell(NamedTuple):
    """Lines of text from anywhere; `style` is one of rich's."""

    text: str
    style: str = ""


def decoded(body: bytes, kind: type[_T]) -> _T:
    """An agent's answer; CouldNotFindOutError where it is something else."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CouldNotFindOutError(f"the answer is not one of flapd's: {error}") from None


def print_json(body: bytes) -> None:
    """The same JSON, in ASCII, so that no text in it steers a terminal."""
    try:
        print(json.dumps(json.loads(body), indent=2))
    except (ValueError, RecursionError):
        raise CouldNotFindOutError("the answer is not one of flapd's: it is no JSON") from None


def note(sentence: str) -> None:
    """Beside the data: to stderr."""
    print(f"flapd: {printable(sentence)}", file=sys.stderr)


def give_up_stdout() -> None:
    """Nobody can read what was printed; the interpreter must not flush it once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_line(text: str, style: str = "", indent: int = 0) -> None:
    """At most 100 columns wide, what goes on below indented; in colour on a terminal."""
    width = min(WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else WIDTH
    gap = " " * indent
    for line in textwrap.wrap(printable(text), width, subsequent_indent=gap) or [""]:
        if not sys.stdout.isatty():
            print(line)
            continue
        from rich.console import Console  # noqa: PLC0415 - as below
        from rich.text import Text  # noqa: PLC0415

        Console().print(Text(line, style), soft_wrap=True)


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
    """At most 100 columns wide; in colour on a terminal."""
    # Nothing but a table is worth the time that rich takes to be imported.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(markup=False, emoji=False, highlight=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.is_number else "left",
            overflow="fold",
            no_wrap=column.is_whole,
        )
    for row in rows:
        table.add_row(*(Text(_harmless(cell.text), cell.style) for cell in row))
    console.print(table)


def _harmless(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))
