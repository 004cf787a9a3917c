"""Superseded: incidents that others took in, which may come back when more is known."""

import sqlite3

from flapd.model.incident import Incident
from flapd.store.body import decoded_as

_SINCE = """
SELECT body FROM incidents
WHERE end_unix_ns >= ? AND id IN (SELECT incident FROM superseded) ORDER BY begin_unix_ns, id
"""


def superseded_since(connection: sqlite3.Connection, since_unix_ns: int) -> list[Incident]:
    """As they were told last, those that ended since then."""
    rows = connection.execute(_SINCE, (since_unix_ns,))
    return [decoded_as(Incident, body) for (body,) in rows]
