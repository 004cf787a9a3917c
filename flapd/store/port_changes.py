"""Port changes: those that a history of many nodes had heard of since a moment."""

import sqlite3

import msgspec

from flapd.model.event import PortChange

_SINCE = """
SELECT body FROM journal INDEXED BY port_changes
WHERE kind = 'port'
    AND json_extract(CAST(body AS TEXT), '$.recorded_ns')
    + json_extract(CAST(body AS TEXT), '$.wall_offset_ns') >= ?
ORDER BY seq
"""
"""In the words of the index: else the whole journal is read, in its order."""


def port_changes_since(connection: sqlite3.Connection, since_unix_ns: int) -> list[PortChange]:
    """In the order in which they were heard."""
    rows = connection.execute(_SINCE, (since_unix_ns,))
    return [msgspec.json.decode(body, type=PortChange) for (body,) in rows]
