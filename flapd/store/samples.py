"""Samples: what the rings of one port hold, as one table."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from flapd.core.fabric.catalogue import Tier
from flapd.store.as_read import values_as_read
from flapd.store.ring import Ring, RingError, read_ring, ring_path
from flapd.store.thinning import Row, bounded, thinned

MOST_ROWS = 10_000
_TIERS: tuple[Tier, ...] = get_args(Tier)


class SampleTable(msgspec.Struct, frozen=True):
    """Samples in order of time; None where a value was not read then."""

    columns: list[str]
    """`time` (monotonic, ns: when the sweep began), then names of the catalogue."""
    rows: list[Row]


def samples(
    directory: Path,
    key: str,
    since_ns: int,
    counters: Sequence[str] | None,
    step_ns: int,
    boot: str | None = None,
) -> SampleTable:
    """Sweeps of this port that began after the monotonic time `since_ns`.

    `counters` None = all there are. Where `step_ns` is not 0, one row a step, or two with
    the lowest and highest values; at most MOST_ROWS in any case. Rings of another boot than
    `boot` are left out, since their times are of another clock.
    """
    rings = [ring for ring in _rings(directory, key) if boot in (None, ring.boot)]
    names = list(counters) if counters is not None else _all_columns(rings)
    rows = sorted(
        (row for ring in rings for row in _rows(ring, since_ns, names)), key=lambda row: row[0] or 0
    )
    if step_ns > 0:
        rows = list(thinned(rows, step_ns))
    return SampleTable(["time", *names], bounded(rows, MOST_ROWS))


def _rings(directory: Path, key: str) -> Iterator[Ring]:
    for tier in _TIERS:
        try:
            yield read_ring(ring_path(directory, key, tier))
        except RingError:
            continue  # a tier without a ring has no samples, and the reader of it says so


def _all_columns(rings: Sequence[Ring]) -> list[str]:
    return list(dict.fromkeys(name for ring in rings for name in ring.columns))


def _rows(ring: Ring, since_ns: int, names: Sequence[str]) -> Iterator[Row]:
    if not set(names) & set(ring.columns):
        return
    try:
        for row in ring.rows(since_ns, names):
            values = values_as_read(ring.tier, row)
            if values:
                yield [row.before_ns, *map(values.get, names)]
    except RingError:
        return  # replaced meanwhile: by a new one, which has no samples yet
