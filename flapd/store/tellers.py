"""Tellers: which node told first of each thing in a history of many nodes."""

import sqlite3
from collections.abc import Iterable

from flapd.model.event import Event, PortChange
from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.store.body import decoded_event
from flapd.store.projection import PROJECTED

_FIRST_OF_PORT = "SELECT kind, body FROM journal WHERE id = ? ORDER BY revision LIMIT 1"


def of_others(connection: sqlite3.Connection, events: Iterable[Event]) -> list[int]:
    """Places of those that are of a thing of which another node told before.

    A line of a shared log is told by all who read it, and a claim on an incident is not kept: no
    fault and no incident is another's.
    """
    tellers: dict[str, str] = {}
    found = []
    for place, event in enumerate(events):
        if isinstance(event, Fault | Incident):
            continue
        if event.id not in tellers:
            tellers[event.id] = _kept_of(connection, event) or event.node
        if tellers[event.id] != event.node:
            found.append(place)
    return found


def _kept_of(connection: sqlite3.Connection, event: Event) -> str | None:
    """None: nothing is kept of it."""
    if isinstance(event, PortChange):
        row = connection.execute(_FIRST_OF_PORT, (event.id,)).fetchone()
        return None if row is None else decoded_event(*row).node
    table = PROJECTED[type(event)].shelf.table
    row = connection.execute(
        f"SELECT node FROM {table} WHERE id = ?",  # noqa: S608 - a table of ours
        (event.id,),
    ).fetchone()
    return None if row is None else row[0]
