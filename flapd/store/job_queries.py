"""Queries for what is told of jobs: which jobs, faults, stalls and incidents of the history."""

import sqlite3
from typing import Any, Generic, TypeVar

import msgspec

from flapd.model.event import Cause
from flapd.model.fault import Fault, FaultKind
from flapd.model.incident import Incident, Verdict
from flapd.model.job import Job, JobKind
from flapd.model.loss import Regime
from flapd.model.stall import Stall, StallClass
from flapd.store.body import decoded_as
from flapd.store.cursor import encode_cursor
from flapd.store.incident_links import INCIDENTS_OF_JOB, INCIDENTS_OF_PORT, jobs_of
from flapd.store.job_rows import (
    fault_facet,
    fault_row,
    incident_facet,
    incident_row,
    job_facet,
    job_row,
    stall_facet,
    stall_row,
)
from flapd.store.shelf import FAULTS, INCIDENTS, JOBS, STALLS, Condition, Shelf, Wish, find
from flapd.store.shelf import position_of as _position_of

_T = TypeVar("_T")
JobEvent = Job | Fault | Stall | Incident


class _Query(msgspec.Struct, frozen=True, kw_only=True):
    """Filters that all must hold; None = any. The span selects what overlaps it."""

    since_unix_ns: int | None = None
    until_unix_ns: int | None = None
    node: str | None = None
    job: str | None = None
    limit: int = 100
    cursor: str | None = None
    """`next` of the page before."""


class JobQuery(_Query, frozen=True, kw_only=True):
    kind: JobKind | None = None


class FaultQuery(_Query, frozen=True, kw_only=True):
    """A fault may have been as far from its time as its clock may be wrong."""

    kind: FaultKind | None = None
    rank: int | None = None
    host: str | None = None


class StallQuery(_Query, frozen=True, kw_only=True):
    stall_class: StallClass | None = None


class IncidentQuery(_Query, frozen=True, kw_only=True):
    """A node is one that had part in it."""

    verdict: Verdict | None = None
    regime: Regime | None = None
    status: str | None = None
    """`open` or `closed`."""
    port: str | None = None
    """It names an outage of this port."""
    cause: Cause | None = None
    """Likewise of this cause."""
    min_down_ns: int | None = None
    """Likewise one that can have lasted so long."""


class Page(msgspec.Struct, Generic[_T], frozen=True):
    """Newest first; `next` is None on the last page."""

    items: list[_T]
    next: str | None


def find_jobs(connection: sqlite3.Connection, query: JobQuery) -> Page[Job]:
    """One page, as of the functions below; FlapdError where the cursor is none of ours."""
    return _page(connection, JOBS, query, Job)


def find_faults(connection: sqlite3.Connection, query: FaultQuery) -> Page[Fault]:
    return _page(connection, FAULTS, query, Fault)


def find_stalls(connection: sqlite3.Connection, query: StallQuery) -> Page[Stall]:
    return _page(connection, STALLS, query, Stall)


def find_incidents(connection: sqlite3.Connection, query: IncidentQuery) -> Page[Incident]:
    """None that became another one."""
    shelf = INCIDENTS if query.port is None else INCIDENTS_OF_PORT
    if query.job is not None:
        shelf = INCIDENTS_OF_JOB
    return _page(connection, shelf, query, Incident, _wish(query))


def _page(
    connection: sqlite3.Connection,
    shelf: Shelf,
    query: _Query,
    kind: type[_T],
    wish: Wish | None = None,
) -> Page[_T]:
    rows, more = find(connection, shelf, query, wish)
    return Page(
        [decoded_as(kind, body) for _position, _id, body in rows],
        encode_cursor(_position_of(rows[-1])) if more and rows else None,
    )


_NAMES_PORT = "EXISTS (SELECT 1 FROM flap_incidents WHERE incident = incidents.id AND {})"
_NAMES_FLAP = """
EXISTS (
    SELECT 1 FROM flap_incidents AS link JOIN flaps ON flaps.id = link.flap
    JOIN facets ON facets.facet = flaps.facet WHERE link.incident = incidents.id AND {}
)
"""


def _wish(query: IncidentQuery) -> Wish:
    rows = Condition()
    rows.add("incidents.id IN (SELECT incident FROM incident_nodes WHERE node = ?)", query.node)
    rows.add("link_job = ?", query.job)
    if query.port is not None:
        _add_port(rows, query.job, query.port, query.node)
    rows.add(_NAMES_FLAP.format("facets.cause = ?"), query.cause)
    long_enough = _NAMES_FLAP.format("(flaps.down_ns_max IS NULL OR flaps.down_ns_max >= ?)")
    rows.add(long_enough, query.min_down_ns)
    return Wish(rows=rows)


def _add_port(rows: Condition, job: str | None, port: str, node: str | None) -> None:
    """A job has few incidents, a name that ports of all nodes have may have nearly all."""
    of_port = "link_port = ?" if node is None else "link_port = ? AND link_node = ?"
    term = of_port if job is None else _NAMES_PORT.format(of_port)
    rows.add(term, *(name for name in (port, node) if name is not None))


_COLUMNS: dict[type, Any] = {
    Job: (JOBS, job_facet, job_row),
    Fault: (FAULTS, fault_facet, fault_row),
    Stall: (STALLS, stall_facet, stall_row),
    Incident: (INCIDENTS, incident_facet, incident_row),
}


def matches_job_query(query: _Query, event: JobEvent) -> bool:
    """Whether what is not in the history is what was asked for.

    Of an incident it is not known then what its outages were: they count as what was asked for.
    """
    shelf, facet, row = _COLUMNS[type(event)]
    told = {**facet(event), **row(event)}
    return (
        told.get("merged_into") is None
        and all(
            getattr(query, name) in (None, told[name]) for name in (*shelf.classes, *shelf.keys)
        )
        and (query.since_unix_ns is None or told["end_unix_ns"] >= query.since_unix_ns)
        and (query.until_unix_ns is None or told[shelf.begin] <= query.until_unix_ns)
        and (not isinstance(query, IncidentQuery) or _is_asked_for(query, event))
    )


def _is_asked_for(query: IncidentQuery, event: JobEvent) -> bool:
    return (
        isinstance(event, Incident)
        and (query.job is None or query.job in jobs_of(event))
        and (query.port is None or any(cause.port == query.port for cause in event.causes))
    )
