"""Gather: what a page tells of, by the same items as the API."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from flapd.core.cost.settings import CostSettings
from flapd.core.fabric.view import PortView
from flapd.model.event import Outage
from flapd.model.times import SECOND_NS, rfc3339
from flapd.serve.agent import Agent, Teller
from flapd.serve.errors import ApiError
from flapd.serve.flaps_api import flap_list, span_summary, undurable_outages
from flapd.serve.items import FlapItem, FlapList, PortItem
from flapd.serve.job_items import IncidentDetail, IncidentItem, IncidentList
from flapd.serve.jobs_api import JobsApi
from flapd.serve.page.charts import chart_area
from flapd.serve.page.front import Front
from flapd.serve.page.html import Child, Html, element
from flapd.serve.page.marks import (
    MarkList,
    fault_marks,
    flap_mark,
    incident_marks,
    mark_list,
    stall_marks,
)
from flapd.serve.parameter import read_parameters
from flapd.serve.ports_api import Ports
from flapd.serve.query import (
    FAULT_PARAMETERS,
    INCIDENT_PARAMETERS,
    LARGEST_LIMIT,
    STALL_PARAMETERS,
)
from flapd.serve.settings import DEFAULT_PORT
from flapd.serve.status import status_of
from flapd.serve.summary_item import SummaryItem
from flapd.serve.told import flap_item, without_jobs
from flapd.store.black_box import BlackBox
from flapd.store.database import HistoryError
from flapd.store.flap_query import FlapQuery
from flapd.store.samples import samples

FRONT_INCIDENTS = 8
FRONT_FLAPS = 15
PORT_FLAPS = 20
RING_NS = 60 * SECOND_NS
_DAY_NS = 86_400 * SECOND_NS

_T = TypeVar("_T")


class OneFlap(NamedTuple):
    item: FlapItem
    port: PortItem | None
    """As it is now; None: there is none of this name any more."""
    black_box: BlackBox | None
    driver: str | None
    downs: list[tuple[float, float]]
    """From when to when it was down, in unix seconds; empty while it goes on."""


class Past:
    """What happened. Called in threads, as its heirs: it may wait for the disk, no more."""

    def __init__(self, teller: Teller, jobs: JobsApi) -> None:
        self._teller = teller
        self._jobs = jobs

    @property
    def node(self) -> str:
        return self._teller.about.node

    def last_incidents(self, most: int) -> list[IncidentItem]:
        asked = {"limit": str(most)}
        values = read_parameters(INCIDENT_PARAMETERS, asked.items(), time.time_ns())
        return self.incidents(values).items

    def incidents(self, values: Mapping[str, Any]) -> IncidentList:
        return self._jobs.incidents(values)

    def incident(self, incident_id: str) -> IncidentDetail:
        found = self._jobs.incident(incident_id)
        if found is None:
            raise ApiError("not_found", f"there is no incident {incident_id}", "id")
        return found

    def flaps(self, query: FlapQuery, sees_jobs: bool) -> FlapList:
        return flap_list(self._teller.history, query, undurable_outages(self._teller), sees_jobs)

    def marks(self, since_unix_ns: int, until_unix_ns: int, sees_jobs: bool) -> MarkList:
        """The newest of each kind in this span; of jobs for those alone who may see them."""
        query = FlapQuery(
            since_unix_ns=since_unix_ns, until_unix_ns=until_unix_ns, limit=LARGEST_LIMIT
        )
        flaps = self.flaps(query, sees_jobs)
        marks, partly = [flap_mark(one) for one in flaps.items], flaps.next is not None
        for found, of in self._of_jobs(since_unix_ns, until_unix_ns) if sees_jobs else ():
            marks += [mark for item in found.items for mark in of(item)]
            partly = partly or found.next is not None
        return mark_list(marks, partly=partly)

    def _of_jobs(self, since_unix_ns: int, until_unix_ns: int) -> Iterator[tuple[Any, Any]]:
        """Lists, and what makes marks of their items."""
        asked = {"since": rfc3339(since_unix_ns), "until": rfc3339(until_unix_ns), "limit": "1000"}
        for parameters, listed, of in (
            (STALL_PARAMETERS, self._jobs.stalls, stall_marks),
            (FAULT_PARAMETERS, self._jobs.faults, fault_marks),
            (INCIDENT_PARAMETERS, self.incidents, incident_marks),
        ):
            yield listed(read_parameters(parameters, asked.items(), time.time_ns())), of


class PastSource(Protocol):
    """What pages of the past are made of."""

    @property
    def node(self) -> str: ...

    def incidents(self, values: Mapping[str, Any]) -> IncidentList: ...

    def incident(self, incident_id: str) -> IncidentDetail: ...

    def flaps(self, query: FlapQuery, sees_jobs: bool) -> FlapList: ...

    def flap(self, flap_id: str, sees_jobs: bool) -> OneFlap: ...

    def marks(self, since_unix_ns: int, until_unix_ns: int, sees_jobs: bool) -> MarkList: ...

    def ports_by_name(self) -> dict[str, PortItem]:
        """As they are now, as far as that is known here."""
        ...


class Gather(Past):
    """And how the ports of one node are."""

    def __init__(self, agent: Agent, jobs: JobsApi, cost: CostSettings) -> None:
        super().__init__(agent, jobs)
        self._agent = agent
        self._cost = cost

    def front(self, sees_jobs: bool) -> Front:
        """Parts that the history does not give are None: the ports are shown all the same."""
        return Front(
            status=status_of(self._agent),
            ports=self._ports().page(LARGEST_LIMIT, None).items,
            flaps=unless_unreadable(
                lambda: self.flaps(FlapQuery(limit=FRONT_FLAPS), sees_jobs).items
            ),
            incidents=unless_unreadable(lambda: self.last_incidents(FRONT_INCIDENTS))
            if sees_jobs
            else None,
            day=unless_unreadable(lambda: self._day(sees_jobs)),
        )

    def _ports(self) -> Ports:
        return Ports(self._agent, time.monotonic_ns())

    def _day(self, sees_jobs: bool) -> SummaryItem:
        now_ns = time.time_ns()
        return span_summary(self._agent.history, (now_ns - _DAY_NS, now_ns), sees_jobs, self._cost)

    def ports_by_name(self) -> dict[str, PortItem]:
        return {item.port: item for item in self._ports().page(LARGEST_LIMIT, None).items}

    def port(self, name: str) -> tuple[PortItem, PortView]:
        ports = self._ports()
        return ports.item(name), ports.named(name)

    def ring(self, view: PortView) -> Html:
        """Charts of the last minute."""
        snapshot = self._agent.snapshot()
        offset_ns = snapshot.wall_offset_ns
        if offset_ns is None:
            return element("p", "It is not known yet what time it is.")
        since_ns = time.time_ns() - RING_NS - offset_ns
        ring = self._agent.about.ring
        table = samples(ring, view.port.key, since_ns, None, 0, snapshot.boot)
        if not table.rows:
            return element("p", "No sample of the last minute is in the ring.")
        rows = [[(begun_ns or 0) + offset_ns, *values] for begun_ns, *values in table.rows]
        return chart_area("ring-charts", table.columns, rows, view.port.driver)

    def flap(self, flap_id: str, sees_jobs: bool) -> OneFlap:
        waiting = {one.id: one for one in undurable_outages(self._agent)}
        history = self._agent.history
        found = waiting.get(flap_id) or history.flap(flap_id)
        if found is None:
            raise ApiError("not_found", f"there is no flap {flap_id}", "id")
        black_box = None if flap_id in waiting else history.black_box(flap_id)
        return self._one_flap(found, flap_id not in waiting, black_box, sees_jobs)

    def _one_flap(
        self, found: Outage, durable: bool, black_box: BlackBox | None, sees_jobs: bool
    ) -> OneFlap:
        loss = self._agent.history.losses([found.id]).get(found.id) if durable else None
        item = flap_item(found, durable=durable, black_box=black_box is not None, loss=loss)
        ports = self._ports()
        view = next((view for view in ports.views if view.port.key == found.key), None)
        return OneFlap(
            item if sees_jobs else without_jobs(item),
            ports.of_key(found.key),
            black_box,
            None if view is None else view.port.driver,
            downs_of(found),
        )


def downs_of(outage: Outage) -> list[tuple[float, float]]:
    if outage.up is None:
        return []
    begin_ns, end_ns = outage.down.earliest_unix_ns, outage.up.latest_unix_ns
    return [(begin_ns / SECOND_NS, end_ns / SECOND_NS)]


def black_box_charts(flap: OneFlap) -> Child:
    box = flap.black_box
    if box is None:
        return element("p", _no_samples(flap.item))
    notes = [
        element("p", text)
        for text, is_so in (
            ("More of it is to come.", box.pending),
            ("Samples of some of its time were lost, expired, or are damaged.", box.incomplete),
        )
        if is_so
    ]
    if not box.rows:
        return [*notes, element("p", "No sample of it is kept.")]
    chart = chart_area("black-box-charts", box.columns, box.rows, flap.driver, flap.downs)
    return [*notes, chart]


def _no_samples(flap: FlapItem) -> str:
    if flap.black_box is not None:
        return "No samples around it are kept."
    place = f"http://{flap.node}:{DEFAULT_PORT}/flaps/{flap.id}"
    return f"Samples around it stay with its node, whose agent shows them: {place}"


def unless_unreadable(read: Callable[[], _T]) -> _T | None:
    try:
        return read()
    except HistoryError:
        return None
