"""Retransmitted: what the ports sent again, as far back as their samples are kept."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from flapd.core.cost.step_fabric import Resent
from flapd.core.fabric.catalogue import RETRANSMISSION_CAUSES, counter_of
from flapd.core.fabric.view import PortView, Snapshot
from flapd.model.times import SECOND_NS
from flapd.store.samples import SampleTable, samples

_TIMED = ("ack_timeout", "adaptive_timeout")
"""Causes for which somebody waited until a timer fired."""


def retransmitted(
    snapshot: Snapshot, ring: Path, since_unix_ns: int, tick_seconds: float
) -> Resent | None:
    """Since then, of all ports together; None where no port tells or nothing was sampled."""
    if snapshot.wall_offset_ns is None:
        return None
    since_ns = since_unix_ns - snapshot.wall_offset_ns
    counts: Counter[str] = Counter()
    covered_ns = 0
    for view in snapshot.ports:
        names = _counters(view)
        if names:
            table = samples(ring, view.port.key, since_ns, list(names), 0, snapshot.boot)
            covered_ns = max(covered_ns, _covered_ns(table))
            for place, cause in enumerate(names.values(), start=1):
                counts[cause] += _rise(view, table, place)
    if not covered_ns:
        return None
    waits = sum(counts[cause] for cause in _TIMED)
    return Resent(covered_ns / SECOND_NS, dict(counts), waits * tick_seconds)


def _counters(view: PortView) -> dict[str, str]:
    """Name -> cause, of what this port counts."""
    found: dict[str, str] = {}
    for name in view.values:
        counter = counter_of(view.port.driver, name)
        if counter is not None and counter.meaning in RETRANSMISSION_CAUSES:
            found[name] = counter.meaning
    return found


def _covered_ns(table: SampleTable) -> int:
    if not table.rows:
        return 0
    return (table.rows[-1][0] or 0) - (table.rows[0][0] or 0)


def _rise(view: PortView, table: SampleTable, place: int) -> int:
    """What was reset in between adds nothing."""
    counter = counter_of(view.port.driver, table.columns[place])
    assert counter is not None
    values = _known(row[place] for row in table.rows)
    return sum(counter.rise(last, value) or 0 for last, value in pairwise(values))


def _known(values: Iterable[int | None]) -> Iterable[int]:
    return (value for value in values if value is not None)
