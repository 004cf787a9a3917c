"""Projection: what the journal takes, put where questions find it; the highest revision wins."""

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from flapd.model.event import Event, Outage
from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.model.job import Job
from flapd.model.stall import Stall
from flapd.store.flap_row import flap_facet, flap_row
from flapd.store.incident_links import follow_flap, link_incident
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
from flapd.store.shelf import FAULTS, FLAPS, INCIDENTS, JOBS, STALLS, Shelf, put


class Projected(NamedTuple):
    shelf: Shelf
    facet: Callable[[Any], Mapping[str, Any]]
    row: Callable[[Any], Mapping[str, Any]]
    then: Callable[[sqlite3.Connection, Any], None] | None = None


PROJECTED: dict[type, Projected] = {
    Outage: Projected(FLAPS, flap_facet, flap_row, follow_flap),
    Job: Projected(JOBS, job_facet, job_row),
    Fault: Projected(FAULTS, fault_facet, fault_row),
    Stall: Projected(STALLS, stall_facet, stall_row),
    Incident: Projected(INCIDENTS, incident_facet, incident_row, link_incident),
}


def project(connection: sqlite3.Connection, event: Event, seq: int, body: bytes) -> bool:
    """Whether it is a revision that is shown from now on."""
    how = PROJECTED.get(type(event))
    if how is None:
        return False
    identity = {"id": event.id, "revision": event.revision, "seq": seq, "body": body}
    is_newest = put(connection, how.shelf, how.facet(event), {**identity, **how.row(event)})
    if is_newest and how.then is not None:
        how.then(connection, event)
    return is_newest
