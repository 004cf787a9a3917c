"""Incident links: which incidents an outage belongs to, and which incidents became another one.

A link copies facet and time of its outage and of its incident, so that outages and incidents of a
job and incidents of a port are index ranges as well (shelf.py).
"""

import sqlite3
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import msgspec

from flapd.model.event import Outage
from flapd.model.incident import Incident
from flapd.model.loss import Range
from flapd.store.shelf import FLAPS, INCIDENTS

FLAPS_OF_JOB = FLAPS._replace(
    table="flap_jobs CROSS JOIN flaps ON flaps.id = flap_jobs.flap",
    position="flap_down_unix_ns",
    begin="flap_down_unix_ns",
    id="flap",
    facet="flap_facet",
)
INCIDENTS_OF_PORT = INCIDENTS._replace(
    table="flap_incidents CROSS JOIN incidents ON incidents.id = flap_incidents.incident",
    position="incident_begin_unix_ns",
    begin="incident_begin_unix_ns",
    id="incident",
    facet="incident_facet",
)
INCIDENTS_OF_JOB = INCIDENTS_OF_PORT._replace(
    table="incident_jobs CROSS JOIN incidents ON incidents.id = incident_jobs.incident",
)

_LINK = """
INSERT OR REPLACE INTO flap_incidents
    (flap, incident, link_port, link_node, gpu_low, gpu_likely, gpu_high,
    flap_facet, flap_down_unix_ns, incident_facet, incident_begin_unix_ns)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, flaps.facet, flaps.down_unix_ns,
    incidents.facet, incidents.begin_unix_ns
FROM incidents LEFT JOIN flaps ON flaps.id = ?1 WHERE incidents.id = ?2
"""
_LINK_JOB = """
INSERT INTO incident_jobs (link_job, incident, incident_facet, incident_begin_unix_ns)
SELECT ?1, id, facet, begin_unix_ns FROM incidents WHERE id = ?2
"""
_LINK_FLAPS_OF_JOB = """
INSERT INTO flap_jobs (link_job, flap, incident, flap_facet, flap_down_unix_ns)
SELECT ?1, flap, incident, flap_facet, flap_down_unix_ns FROM flap_incidents WHERE incident = ?2
"""
_FOLLOW = tuple(
    f"UPDATE {table} SET (flap_facet, flap_down_unix_ns) = "  # noqa: S608 - tables of ours
    "(SELECT facet, down_unix_ns FROM flaps WHERE id = ?1) WHERE flap = ?1"
    for table in ("flap_incidents", "flap_jobs")
)
_OF_FLAP = f"""
SELECT incident, flap_incidents.gpu_low, flap_incidents.gpu_likely, flap_incidents.gpu_high
FROM flap_incidents JOIN incidents ON incidents.id = flap_incidents.incident
WHERE {INCIDENTS.shown} AND flap = ? ORDER BY incident_begin_unix_ns, incident
"""  # noqa: S608 - a condition of ours


class FlapLoss(msgspec.Struct, frozen=True):
    """What incidents say of one outage."""

    incidents: tuple[str, ...]
    gpu_seconds: Range | None
    """Of all of them; None: none of them says."""


def link_incident(connection: sqlite3.Connection, incident: Incident) -> None:
    """In place of what its revision before said."""
    unlink_incident(connection, incident.id)
    causes = {cause.flap: (cause.port, cause.node) for cause in incident.causes}
    for flap in dict.fromkeys([*causes, *incident.flap_gpu_seconds, *incident.flaps]):
        loss = incident.flap_gpu_seconds.get(flap)
        gpu = (None, None, None) if loss is None else (loss.low, loss.likely, loss.high)
        link = (flap, incident.id, *causes.get(flap, (None, None)), *gpu)
        connection.execute(_LINK, link)
    nodes = [(node, incident.id) for node in {*incident.nodes, incident.node}]
    connection.executemany("INSERT INTO incident_nodes VALUES (?, ?)", nodes)
    jobs = [(job, incident.id) for job in jobs_of(incident)]
    connection.executemany(_LINK_JOB, jobs)
    connection.executemany(_LINK_FLAPS_OF_JOB, jobs)
    others = [(other, incident.id) for other in incident.supersedes if other != incident.id]
    connection.executemany("INSERT OR IGNORE INTO superseded VALUES (?, ?)", others)
    # Of two that say so of each other, the one that was told last is right.
    connection.executemany("DELETE FROM superseded WHERE by_incident = ? AND incident = ?", others)


def jobs_of(incident: Incident) -> set[str]:
    """That it hit."""
    return set(incident.jobs) if incident.job is None else {incident.job}


def unlink_incident(connection: sqlite3.Connection, incident_id: str) -> None:
    for table in ("flap_incidents", "flap_jobs", "incident_nodes", "incident_jobs"):
        connection.execute(f"DELETE FROM {table} WHERE incident = ?", (incident_id,))  # noqa: S608
    connection.execute("DELETE FROM superseded WHERE by_incident = ?", (incident_id,))


def follow_flap(connection: sqlite3.Connection, outage: Outage) -> None:
    follow_flaps(connection, [outage.id])


def follow_flaps(connection: sqlite3.Connection, flap_ids: Iterable[str]) -> None:
    ids = [(flap_id,) for flap_id in flap_ids]
    for statement in _FOLLOW:
        connection.executemany(statement, ids)


def losses_of(connection: sqlite3.Connection, flap_ids: Sequence[str]) -> dict[str, FlapLoss]:
    """By outage; those in no incident are not in it."""
    found = {flap: connection.execute(_OF_FLAP, (flap,)).fetchall() for flap in flap_ids}
    return {flap: _loss(links) for flap, links in found.items() if links}


def _loss(links: Sequence[tuple[Any, ...]]) -> FlapLoss:
    told = [Range(*gpu) for _incident, *gpu in links if gpu[1] is not None]
    return FlapLoss(tuple(link[0] for link in links), reduce(_sum, told) if told else None)


def _sum(one: Range, other: Range) -> Range:
    return Range(one.low + other.low, one.likely + other.likely, one.high + other.high)


def survivor(connection: sqlite3.Connection, incident_id: str) -> str:
    """The incident that it became, by however many steps; itself where it is shown."""
    seen = {incident_id}
    while True:
        row = connection.execute(
            "SELECT by_incident FROM superseded WHERE incident = ?", (incident_id,)
        ).fetchone()
        if row is None or row[0] in seen:
            return incident_id
        incident_id = row[0]
        seen.add(incident_id)
