"""Charts: samples as what the script draws: rates and rises, worked out exactly here."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from flapd.core.fabric.catalogue import (
    CARRIER,
    PHYSICAL_STATE,
    STATE,
    Counter,
    counter_of,
    short_name,
    transmitted_among,
)
from flapd.model.times import SECOND_NS
from flapd.serve.page.html import Html, element
from flapd.serve.page.parts import Column, table
from flapd.store.thinning import Row, bounded

MOST_ROWS = 1500
MOST_ERRORS = 8
_RECEIVED = "counters/port_rcv_data"
_BITS = 8


class Series(msgspec.Struct, frozen=True):
    label: str
    values: list[float | int | None]


class Chart(msgspec.Struct, frozen=True):
    title: str
    unit: str
    is_stepped: bool
    times: list[float]
    """Unix seconds."""
    series: list[Series]


class Rise(msgspec.Struct, frozen=True):
    """What a counter of errors did in the span."""

    name: str
    first: int
    last: int
    rises: list[int | None]
    """Since its first value, a row each; None: not read then, or reset since."""

    @property
    def total(self) -> int | None:
        return next((rise for rise in reversed(self.rises) if rise is not None), None)


def chart_area(
    name: str,
    columns: Sequence[str],
    rows: list[Row],
    driver: str | None,
    downs: Sequence[tuple[float, float]] = (),
) -> Html:
    """`rows` begin with unix time in nanoseconds, `columns` with "time".

    `downs`: from when to when the port was down, in unix seconds.
    """
    rows = bounded(rows, MOST_ROWS)
    risen = _risen(columns, rows, driver)
    charts = [*_states(columns, rows), *_traffic(columns, rows, driver), *_errors(rows, risen)]
    return element(
        "div",
        element(
            "div",
            id=name,
            class_="charts",
            data_charts=msgspec.json.encode(charts).decode(),
            data_bands=msgspec.json.encode(downs).decode(),
        ),
        _risen_table(risen),
    )


def _states(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[Chart]:
    names = [name for name in (STATE, PHYSICAL_STATE, CARRIER) if name in columns]
    series = {short_name(name): [row[columns.index(name)] for row in rows] for name in names}
    yield from _chart("State (4 = ACTIVE; physical 5 = LinkUp)", "", True, rows, series)


def _traffic(columns: Sequence[str], rows: Sequence[Row], driver: str | None) -> Iterator[Chart]:
    sent = transmitted_among(driver, columns[1:])
    series = {
        title: _rates(rows, columns.index(name), counter)
        for title, name in (("sent", sent), ("received", _RECEIVED))
        if name in columns and (counter := counter_of(driver, name or "")) is not None
    }
    yield from _chart("Traffic", "Gb/s", False, rows, series)


def _rates(rows: Sequence[Row], place: int, counter: Counter) -> list[float | None]:
    """Between one reading and the next, in Gb/s; None where it was not read, or was reset."""
    rates: list[float | None] = []
    before: tuple[int, int] | None = None
    for row in rows:
        at_ns, value = row[0] or 0, row[place]
        rate = None
        if value is not None:
            if before is not None and at_ns > before[0]:
                rise = counter.rise(before[1], value)
                moved = None if rise is None else rise * counter.scale * _BITS
                rate = None if moved is None else round(moved / (at_ns - before[0]), 3)
            before = at_ns, value
        rates.append(rate)
    return rates


def _risen(columns: Sequence[str], rows: Sequence[Row], driver: str | None) -> list[Rise]:
    """Counters of errors that moved, those that moved most first."""
    found = []
    for place, name in enumerate(columns[1:], 1):
        counter = counter_of(driver, name)
        if counter is None or counter.klass != "error" or counter.kind != "counter":
            continue
        values = [row[place] for row in rows]
        known = [value for value in values if value is not None]
        if known and known[0] != known[-1]:
            found.append(Rise(short_name(name), known[0], known[-1], _rises(values, counter)))
    return sorted(found, key=lambda one: -(one.total or 0))


def _rises(values: Sequence[int | None], counter: Counter) -> list[int | None]:
    """Since the first value, or since the last reset."""
    rises: list[int | None] = []
    total, before = 0, None
    for value in values:
        if value is None:
            rises.append(None)
            continue
        rise = 0 if before is None else counter.rise(before, value)
        total = 0 if rise is None else total + rise
        before = value
        rises.append(total)
    return rises


def _errors(rows: Sequence[Row], risen: Sequence[Rise]) -> Iterator[Chart]:
    series = {one.name: one.rises for one in risen[:MOST_ERRORS]}
    yield from _chart("Error counters that moved: rise", "", True, rows, series)


def _chart(
    title: str,
    unit: str,
    is_stepped: bool,
    rows: Sequence[Row],
    series: Mapping[str, Sequence[float | None]],
) -> Iterator[Chart]:
    """Without the rows in which none of it was read; none where nothing was."""
    columns = list(series.values())
    kept = [i for i in range(len(rows)) if any(column[i] is not None for column in columns)]
    if kept:
        times = [round((rows[i][0] or 0) / SECOND_NS, 3) for i in kept]
        lines = [Series(name, [column[i] for i in kept]) for name, column in series.items()]
        yield Chart(title, unit, is_stepped, times, lines)


def _risen_table(risen: Sequence[Rise]) -> Html:
    columns = [Column("Counter"), Column("First", "number"), Column("Last", "number"),
               Column("Rise", "number")]  # fmt: skip
    rows = ((one.name, f"{one.first:,}", f"{one.last:,}", _rise(one)) for one in risen)
    nothing = "No counter of errors moved in this time, of those that were read."
    return table("Counters of errors that moved", columns, rows, nothing, "narrow")


def _rise(one: Rise) -> str:
    return "reset" if one.last < one.first else f"+{one.total:,}"
