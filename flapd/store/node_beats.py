"""Node beats: the last heartbeat of each node, so that one that fell silent is not forgotten."""

import sqlite3
from collections.abc import Iterable

from flapd.model.fleet import FleetMessageError, Heartbeat, decode_heartbeat, encode

Heard = tuple[Heartbeat, int]
"""And when it was received, unix time."""

_KEEP = """
INSERT INTO nodes (node, seen_unix_ns, beat) VALUES (?, ?, ?)
ON CONFLICT (node) DO UPDATE SET seen_unix_ns = excluded.seen_unix_ns, beat = excluded.beat
"""


def keep_beats(connection: sqlite3.Connection, beats: Iterable[Heard]) -> None:
    rows = ((beat.node, received_ns, encode(beat)) for beat, received_ns in beats)
    connection.executemany(_KEEP, rows)


def kept_beats(connection: sqlite3.Connection, since_unix_ns: int) -> list[Heard]:
    """Those received since then; one of a newer flapd says nothing to this one."""
    question = "SELECT beat, seen_unix_ns FROM nodes WHERE seen_unix_ns >= ? ORDER BY node"
    found = []
    for body, received_ns in connection.execute(question, (since_unix_ns,)):
        try:
            found.append((decode_heartbeat(body), received_ns))
        except FleetMessageError:
            continue
    return found
