"""Tellers: what each id stands for in a history of many nodes, and which node told of it first."""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from flapd.model.event import Event, PortChange
from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.store.body import decoded_event, kind_of
from flapd.store.projection import PROJECTED

_KIND = "SELECT kind FROM journal WHERE id = ? LIMIT 1"
_FIRST_OF_PORT = "SELECT kind, body FROM journal WHERE id = ? ORDER BY revision LIMIT 1"


class _First(NamedTuple):
    kind: str
    node: str | None
    """None: it is of all who tell it. A line of a shared log is told by all who read it, and a
    claim on an incident is not kept: no fault and no incident is another's."""


def not_to_be_told(connection: sqlite3.Connection, events: Iterable[Event]) -> dict[int, str]:
    """Places of those that no node may tell, or another alone, with the reason in words.

    That is what has the id of a thing of another kind, or is of a thing of which another node told
    before.
    """
    firsts: dict[str, _First] = {}
    found = {}
    for place, event in enumerate(events):
        first = firsts.get(event.id)
        if first is None:
            first = firsts[event.id] = _first_of(connection, event)
        if first.kind != kind_of(event):
            found[place] = f"{event.id} is the id of a {first.kind}"
        elif first.node not in (None, event.node):
            found[place] = f"another node told of {event.id} first"
    return found


def _first_of(connection: sqlite3.Connection, event: Event) -> _First:
    """As it is kept; else this one."""
    row = connection.execute(_KIND, (event.id,)).fetchone()
    kind = kind_of(event) if row is None else row[0]
    if isinstance(event, Fault | Incident) or kind != kind_of(event):
        return _First(kind, None)
    return _First(kind, _kept_of(connection, event) or event.node)


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
