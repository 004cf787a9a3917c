"""The real hub as a process, and all that it has of each kind."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flapd.model.event import Event, Outage
from flapd.model.fault import Fault
from flapd.model.job import Job
from flapd.model.stall import Stall
from tests.system.harness import PATIENCE_SECONDS, ROOT, SimulatedNode, until

KINDS: dict[str, type] = {"flaps": Outage, "faults": Fault, "stalls": Stall, "jobs": Job}

Held = dict[str, dict[str, int]]
"""By kind: the revision of each id."""


class RunningHub(SimulatedNode):
    """Without ports of its own; can be killed and started again."""

    def __init__(self, directory: Path, servers: Iterable[str], config: str = "") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        urls = ", ".join(f'"{url}"' for url in servers)
        super().__init__(directory, f"{config}\n[fleet]\nservers = [{urls}]")

    def start(self, *before: str) -> None:
        with self.log.open("ab") as log:
            self.agent = subprocess.Popen(
                [*before, sys.executable, "-m", "flapd", "hub", "--config", str(self.config)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stderr=log,
            )

    def items(self, what: str) -> list[Any]:
        found: list[Any] = []
        cursor = ""
        while True:
            page = self.get(f"/api/v1/{what}?limit=1000{cursor}")
            found += page["items"]
            if page["next"] is None:
                return found
            cursor = f"&cursor={page['next']}"

    def held(self) -> Held:
        return {what: {one["id"]: one["revision"] for one in self.items(what)} for what in KINDS}

    def incidents(self) -> dict[str, dict[str, Any]]:
        """All but how often each was told, and what was told in its place on the way."""
        way = {"revision": None, "supersedes": None}
        return {one["id"]: one | way for one in self.items("incidents")}

    def holds(self, told: Held, seconds: float = PATIENCE_SECONDS) -> None:
        """Waits until it has all of that; AssertionError where it has anything else in the end."""
        until(lambda: self._has_as_many(told), f"all of it in {self.directory.name}", seconds)
        assert self.held() == told

    def _has_as_many(self, told: Held) -> bool:
        held = self.held()
        return all(
            len(held[what]) >= len(ids) and sum(held[what].values()) >= sum(ids.values())
            for what, ids in told.items()
        )


def union(events: Iterable[Event]) -> Held:
    """What many nodes told: of each id the highest revision."""
    found: Held = {what: {} for what in KINDS}
    for event in events:
        for what, kind in KINDS.items():
            if isinstance(event, kind):
                found[what][event.id] = max(event.revision, found[what].get(event.id, 0))
    return found
