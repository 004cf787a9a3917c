"""Intake: events of many nodes, thousands in one transaction, in whatever order they come.

What is kept follows from the set of what was taken: of each id the highest revision, and of two
that say different things under one number (nodes that read the same log) the greater body.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from flapd.model.event import Event, Outage
from flapd.model.incident import Incident
from flapd.store.body import encoded_event, kind_of
from flapd.store.incident_links import follow_flaps
from flapd.store.projection import PROJECTED, project
from flapd.store.shelf import Shelf, facet_number
from flapd.store.span import clamped

_JOURNAL = """
INSERT INTO journal (seq, id, revision, kind, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id, revision) DO UPDATE SET body = excluded.body
WHERE excluded.body > journal.body AND excluded.kind = journal.kind
"""
_CHECKPOINT = """
INSERT INTO checkpoint (part, body) VALUES (?, ?)
ON CONFLICT (part) DO UPDATE SET body = excluded.body
"""


class _Entry(NamedTuple):
    seq: int
    event: Event
    body: bytes


class Intake:
    """Used by the history's one writer."""

    def __init__(self) -> None:
        self._facets: dict[tuple[str, tuple[Any, ...]], int] = {}
        """Numbers of facets by their table and values."""

    def forget(self) -> None:
        """After a transaction that was not committed: what it had numbered is not there."""
        self._facets.clear()

    def take(
        self,
        connection: sqlite3.Connection,
        events: Sequence[Event],
        checkpoint: Mapping[str, bytes],
    ) -> None:
        """Within a transaction of the caller's."""
        first = _last_seq(connection) + 1
        entries = [
            _Entry(seq, event, encoded_event(event)) for seq, event in enumerate(events, first)
        ]
        connection.executemany(_JOURNAL, map(_journal_row, entries))
        by_type: dict[type, list[_Entry]] = defaultdict(list)
        for entry in entries:
            by_type[type(entry.event)].append(entry)
        for seq, incident, body in by_type.pop(Incident, []):
            project(connection, incident, seq, body)
        for kind, taken in by_type.items():
            self._project(connection, kind, taken)
        follow_flaps(connection, [entry.event.id for entry in by_type.get(Outage, [])])
        connection.executemany(_CHECKPOINT, checkpoint.items())

    def _project(self, connection: sqlite3.Connection, kind: type, taken: list[_Entry]) -> None:
        how = PROJECTED.get(kind)
        if how is None:
            return
        rows = []
        names: tuple[str, ...] = ()
        for seq, event, body in taken:
            row = how.row(event)
            names = tuple(row)
            facet = self._facet(connection, how.shelf, how.facet(event))
            rows.append((facet, event.id, event.revision, seq, body, *map(clamped, row.values())))
        connection.executemany(_row_statement(how.shelf.table, names), rows)

    def _facet(self, connection: sqlite3.Connection, shelf: Shelf, facet: Mapping[str, Any]) -> int:
        which = shelf.facets, tuple(facet.values())
        number = self._facets.get(which)
        if number is None:
            number = self._facets[which] = facet_number(connection, shelf, facet)
        return number


def _last_seq(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'journal'").fetchone()
    return 0 if row is None else int(row[0])


def _journal_row(entry: _Entry) -> tuple[Any, ...]:
    event = entry.event
    return entry.seq, event.id, event.revision, kind_of(event), entry.body


@cache
def _row_statement(table: str, names: tuple[str, ...]) -> str:
    """What says it under the number that is there keeps its place in the journal."""
    every = ("facet", "id", "revision", "seq", "body", *names)
    updates = [f"{name} = excluded.{name}" for name in every if name not in ("id", "seq")]
    is_newer = f"excluded.revision > {table}.revision"
    updates.append(f"seq = CASE WHEN {is_newer} THEN excluded.seq ELSE {table}.seq END")
    return (
        f"INSERT INTO {table} ({', '.join(every)}) VALUES ({', '.join('?' * len(every))}) "  # noqa: S608
        f"ON CONFLICT (id) DO UPDATE SET {', '.join(updates)} WHERE {is_newer} "
        f"OR (excluded.revision = {table}.revision AND excluded.body > {table}.body)"
    )
