"""HistoryReader: questions to the history, from any thread, while it is being written."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import structlog

from flapd.core.fabric.view import COUNTED_CAUSES
from flapd.model.event import Event, Outage, PortChange
from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.model.job import Job
from flapd.model.stall import Stall
from flapd.store.black_box import BlackBox, read_black_box
from flapd.store.body import decoded_as, decoded_event
from flapd.store.database import (
    HistoryCorruptError,
    bytes_on_disk,
    connect_reader,
    told,
    transaction,
)
from flapd.store.flap_query import FlapPage, FlapQuery, find_flaps
from flapd.store.incident_links import FlapLoss, losses_of, survivor
from flapd.store.incident_summary import IncidentSummary, summarise_incidents
from flapd.store.job_queries import (
    FaultQuery,
    IncidentQuery,
    JobQuery,
    Page,
    StallQuery,
    find_faults,
    find_incidents,
    find_jobs,
    find_stalls,
)
from flapd.store.node_beats import Heard, kept_beats
from flapd.store.port_changes import port_changes_since
from flapd.store.shelf import FAULTS, FLAPS, INCIDENTS, STALLS, Shelf
from flapd.store.summary import FleetSummary, Summary, summarise, summarise_fleet
from flapd.store.superseded import superseded_since

_T = TypeVar("_T")
_log = structlog.get_logger("flapd.history")
_COUNTED = f"""
down_unix_ns >= ?
    AND facet IN (SELECT facet FROM facets WHERE cause IN ({", ".join("?" * len(COUNTED_CAUSES))}))
GROUP BY key
"""  # noqa: S608 - only question marks are put in
_FLAPS_PER_PORT = f"SELECT key, count(*) FROM flaps WHERE {_COUNTED}"  # noqa: S608
_FLAPS_PER_PORT_OF_NODE = f"SELECT key, count(*) FROM flaps WHERE node = ? AND {_COUNTED}"  # noqa: S608


class HistoryReader:
    """Reads a history that exists; each thread gets a connection of its own.

    All its methods raise HistoryError where the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with told(self._path):
            connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
            if connection is None:
                connection = connect_reader(self._path)
                self._local.connection = connection
                self._opened.append(connection)
            yield connection

    def flaps(self, query: FlapQuery) -> FlapPage:
        """One page of outages, newest first; FlapdError where its cursor is malformed."""
        with self._connection() as connection, transaction(connection, "BEGIN"):
            return find_flaps(connection, query)

    def flap(self, flap_id: str) -> Outage | None:
        return self._one(FLAPS, flap_id, Outage)

    def losses(self, flap_ids: Sequence[str]) -> dict[str, FlapLoss]:
        """What incidents say of these outages, by id; those in no incident are not in it."""
        with self._connection() as connection, transaction(connection, "BEGIN"):
            return losses_of(connection, flap_ids)

    def jobs(self, query: JobQuery) -> Page[Job]:
        with self._connection() as connection, transaction(connection, "BEGIN"):
            return find_jobs(connection, query)

    def faults(self, query: FaultQuery) -> Page[Fault]:
        with self._connection() as connection, transaction(connection, "BEGIN"):
            return find_faults(connection, query)

    def stalls(self, query: StallQuery) -> Page[Stall]:
        with self._connection() as connection, transaction(connection, "BEGIN"):
            return find_stalls(connection, query)

    def incidents(self, query: IncidentQuery) -> Page[Incident]:
        with self._connection() as connection, transaction(connection, "BEGIN"):
            return find_incidents(connection, query)

    def fault(self, fault_id: str) -> Fault | None:
        return self._one(FAULTS, fault_id, Fault)

    def stall(self, stall_id: str) -> Stall | None:
        return self._one(STALLS, stall_id, Stall)

    def incident(self, incident_id: str) -> Incident | None:
        """The incident that it became, where it became another."""
        with self._connection() as connection:
            return self._one(INCIDENTS, survivor(connection, incident_id), Incident)

    def _one(self, shelf: Shelf, item_id: str, kind: type[_T]) -> _T | None:
        question = f"SELECT body FROM {shelf.table} WHERE id = ?"  # noqa: S608 - a table of ours
        with self._connection() as connection:
            row = connection.execute(question, (item_id,)).fetchone()
        return None if row is None else decoded_as(kind, row[0])

    def flaps_per_port(self, since_unix_ns: int, node: str | None = None) -> dict[str, int]:
        """Port key -> outages of causes that count, that began at or after `since_unix_ns`.

        Of one node of a fleet, where it is named.
        """
        question = _FLAPS_PER_PORT if node is None else _FLAPS_PER_PORT_OF_NODE
        of_node = () if node is None else (node,)
        with self._connection() as connection:
            return dict(connection.execute(question, (*of_node, since_unix_ns, *COUNTED_CAUSES)))

    def black_box(self, flap_id: str) -> BlackBox | None:
        """The samples around an outage, so far; None where none are kept and none are to come."""
        try:
            with self._connection() as connection, transaction(connection, "BEGIN"):
                return read_black_box(connection, flap_id)
        except HistoryCorruptError as error:
            _log.error("black_box_damaged", flap=flap_id, error=str(error))
            return None

    def summary(self, since_unix_ns: int, until_unix_ns: int) -> Summary:
        """Outages that overlap the span, added up by port and cause."""
        with self._connection() as connection, transaction(connection, "BEGIN"):
            return summarise(connection, since_unix_ns, until_unix_ns)

    def fleet_summary(self, since_unix_ns: int, until_unix_ns: int, most: int) -> FleetSummary:
        """The same of many nodes, of whose ports the worst are told."""
        with self._connection() as connection, transaction(connection, "BEGIN"):
            return summarise_fleet(connection, since_unix_ns, until_unix_ns, most)

    def incident_summary(
        self, since_unix_ns: int, until_unix_ns: int, *, of_fleet: bool = False
    ) -> IncidentSummary:
        """Incidents that overlap the span, added up; of a fleet ports are named with their node."""
        with self._connection() as connection, transaction(connection, "BEGIN"):
            return summarise_incidents(connection, since_unix_ns, until_unix_ns, of_fleet=of_fleet)

    def history_bytes(self) -> int:
        """On the disk: database and write-ahead log."""
        return bytes_on_disk(self._path)

    def first_seq(self) -> int:
        """Sequence number of the oldest event that is kept; 0 where there is none.

        Who resumes before it misses what retention removed.
        """
        with self._connection() as connection:
            (seq,) = connection.execute("SELECT min(seq) FROM journal").fetchone()
        return seq or 0

    def last_seq(self) -> int:
        """Sequence number of the newest event there ever was; 0 before the first."""
        question = "SELECT seq FROM sqlite_sequence WHERE name = 'journal'"
        with self._connection() as connection:
            row = connection.execute(question).fetchone()
        return 0 if row is None else int(row[0])

    def events_after(self, seq: int, limit: int) -> list[tuple[int, Event]]:
        """The next events in the order in which they were committed."""
        question = "SELECT seq, kind, body FROM journal WHERE seq > ? ORDER BY seq LIMIT ?"
        with self._connection() as connection:
            rows = connection.execute(question, (seq, limit)).fetchall()
        return [(number, decoded_event(kind, body)) for number, kind, body in rows]

    def revisions_below(self, event_id: str, revision: int) -> list[Event]:
        """Earlier revisions of an event that the journal still has."""
        question = "SELECT kind, body FROM journal WHERE id = ? AND revision < ?"
        with self._connection() as connection:
            rows = connection.execute(question, (event_id, revision)).fetchall()
        return [decoded_event(kind, body) for kind, body in rows]

    def beats(self, since_unix_ns: int) -> list[Heard]:
        """The last heartbeat of each node that was heard since then."""
        with self._connection() as connection:
            return kept_beats(connection, since_unix_ns)

    def superseded_incidents(self, since_unix_ns: int) -> list[Incident]:
        """What others took in, and no question finds; as it was told last."""
        with self._connection() as connection:
            return superseded_since(connection, since_unix_ns)

    def port_changes(self, since_unix_ns: int) -> list[PortChange]:
        """What changed about ports since then, in the order in which it was heard."""
        with self._connection() as connection:
            return port_changes_since(connection, since_unix_ns)

    def close(self) -> None:
        """Close the connections of all threads; none may be reading."""
        while self._opened:
            self._opened.pop().close()
