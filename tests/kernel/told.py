"""Told: what a program in the guest did to links, and what the agent made of it."""

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from flapd.model.event import Outage
from flapd.store.flap_query import FlapQuery
from flapd.store.history_reader import HistoryReader

TrueFlap = dict[str, list[int]]
"""Of one flap: `down` and `up`, each the moments just before and just after it (monotonic)."""


class Watched:
    """What the agent of this name was shown in scenarios of the guest, and its history."""

    def __init__(self, out: Path, name: str) -> None:
        self.name = name
        self.metrics = (out / name / "metrics").read_text()
        self._told = json.loads((out / "told.json").read_text())
        self._history = out / name / "history.sqlite"

    def scenario(self, name: str) -> Any:
        told = self._told[name]
        assert "told" in told, f"{name} failed in the guest:\n{told['failed']}"
        return told["told"]

    def outages_of(self, acted: dict[str, Any]) -> list[Outage]:
        """Those of the port while this was done to it, oldest first."""
        begin_ns, end_ns = acted["span"]
        outages = read_outages(self._history, FlapQuery(port=acted["port"], limit=1000))
        return [outage for outage in outages if begin_ns < outage.down.latest_ns < end_ns]

    def outages_of_guid(self, guid: str) -> list[Outage]:
        return read_outages(self._history, FlapQuery(guid=guid, limit=1000))


def read_outages(history: Path, query: FlapQuery) -> list[Outage]:
    """Oldest first; of those that may have begun together, the one that is known earlier."""
    with closing(HistoryReader(history)) as reader:
        outages = reader.flaps(query).items
    return sorted(outages, key=_when)


def _when(outage: Outage) -> tuple[int, ...]:
    """By the clock that goes on over a reset of the machine."""
    edges = (outage.down,) if outage.up is None else (outage.down, outage.up)
    return tuple(at for edge in edges for at in (edge.earliest_unix_ns, edge.latest_unix_ns))


def assert_each_is_found(outages: Sequence[Outage], true: Sequence[TrueFlap]) -> None:
    """As many downs as there were, and each outage when it was."""
    assert sum(outage.count for outage in outages) == len(true)
    remaining = iter(true)
    for outage in outages:
        flaps = [next(remaining) for _ in range(outage.count)]
        assert outage.up is not None
        known = outage.down.earliest_ns, outage.down.latest_ns
        assert _overlap(known, flaps[0]["down"]), f"{outage} began {flaps[0]}"
        known = outage.up.earliest_ns, outage.up.latest_ns
        assert _overlap(known, flaps[-1]["up"]), f"{outage} ended {flaps[-1]}"


def _overlap(found: tuple[int, int], true: Sequence[int]) -> bool:
    """The moment lies somewhere in `true`: it can have been within `found`."""
    return found[0] <= true[1] and true[0] <= found[1]


def widths_ns(outages: Sequence[Outage]) -> list[int]:
    """How long the intervals are in which their downs lie."""
    return [outage.down.latest_ns - outage.down.earliest_ns for outage in outages]


def link_downs(metrics: str, device: str) -> float:
    """flapd_link_downs_total of cause link."""
    series = f'flapd_link_downs_total{{cause="link",device="{device}",port="1"}} '
    (line,) = (line for line in metrics.splitlines() if line.startswith(series))
    return float(line.removeprefix(series))
