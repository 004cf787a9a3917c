"""FleetPast: what happened in the fleet, for the page: each port is named with its node."""

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from flapd.serve.errors import ApiError
from flapd.serve.hub.source import HubSource
from flapd.serve.items import FlapItem, FlapList, PortItem
from flapd.serve.job_items import IncidentDetail, IncidentItem, IncidentList, StallItem
from flapd.serve.jobs_api import JobsApi
from flapd.serve.page.gather import OneFlap, Past, downs_of
from flapd.serve.page.marks import MarkList
from flapd.serve.told import flap_item, without_jobs
from flapd.store.flap_query import FlapQuery
from flapd.store.summary import port_of_node

MOST_ROWS = 40
"""Of ports in a timeline: more than that cannot be looked at."""

_Incident = TypeVar("_Incident", IncidentItem, IncidentDetail)


class FleetPast(Past):
    def __init__(self, hub: HubSource, jobs: JobsApi) -> None:
        super().__init__(hub, jobs)
        self._hub = hub

    @property
    def node(self) -> str:
        return f"fleet {self._hub.cluster}"

    def incidents(self, values: Mapping[str, Any]) -> IncidentList:
        found = super().incidents(values)
        return IncidentList([_named_incident(one) for one in found.items], found.next)

    def incident(self, incident_id: str) -> IncidentDetail:
        found = _named_incident(super().incident(incident_id))
        flaps = [_named(flap) for flap in found.flaps]
        stalls = [_named_stall(stall) for stall in found.stalls]
        return replace(found, flaps=flaps, stalls=stalls)

    def flaps(self, query: FlapQuery, sees_jobs: bool) -> FlapList:
        found = super().flaps(query, sees_jobs)
        return FlapList([_named(flap) for flap in found.items], found.next)

    def flap(self, flap_id: str, sees_jobs: bool) -> OneFlap:
        """The samples around it are at its node."""
        found = self._hub.history.flap(flap_id)
        if found is None:
            raise ApiError("not_found", f"there is no flap {flap_id}", "id")
        loss = self._hub.history.losses([flap_id]).get(flap_id)
        item = _named(flap_item(found, loss=loss))
        shown = item if sees_jobs else without_jobs(item)
        return OneFlap(shown, None, None, None, downs_of(found))

    def marks(self, since_unix_ns: int, until_unix_ns: int, sees_jobs: bool) -> MarkList:
        """Of so many ports and jobs as can be looked at, the newest first."""
        found = super().marks(since_unix_ns, until_unix_ns, sees_jobs)
        rows = list(dict.fromkeys(mark.row for mark in reversed(found.marks)))
        shown = set(rows[:MOST_ROWS])
        marks = [mark for mark in found.marks if mark.row in shown]
        return MarkList(marks, found.partly or len(rows) > MOST_ROWS)

    def ports_by_name(self) -> dict[str, PortItem]:
        """Of what a cable ticket needs only the node itself knows most."""
        return {}


def _named(flap: FlapItem) -> FlapItem:
    return replace(flap, port=port_of_node(flap.node, flap.port))


def _named_stall(stall: StallItem) -> StallItem:
    return replace(stall, ports=[port_of_node(stall.node, port) for port in stall.ports])


def _named_incident(incident: _Incident) -> _Incident:
    causes = [replace(one, port=port_of_node(one.node, one.port)) for one in incident.causes]
    return replace(incident, causes=causes)
