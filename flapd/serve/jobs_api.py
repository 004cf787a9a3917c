"""JobsApi: jobs, and what hurt them: faults, stalls and incidents."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple, TypeVar

from aiohttp import web

from flapd.model.errors import FlapdError
from flapd.model.event import Event
from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.model.job import Job
from flapd.model.stall import Stall
from flapd.serve.agent import Teller
from flapd.serve.answers import encoded, encoded_list, in_thread, json_answer
from flapd.serve.errors import ApiError
from flapd.serve.job_items import (
    FaultItem,
    FaultList,
    IncidentDetail,
    IncidentList,
    JobList,
    StallItem,
    StallList,
)
from flapd.serve.parameter import Parameter, text
from flapd.serve.query import (
    FAULT_PARAMETERS,
    INCIDENT_PARAMETERS,
    JOB_PARAMETERS,
    STALL_PARAMETERS,
    query,
)
from flapd.serve.route import Question, Route
from flapd.serve.told import flap_item
from flapd.serve.told_jobs import (
    Naming,
    fault_item,
    incident_fields,
    incident_item,
    job_item,
    naming_of,
    stall_item,
)
from flapd.store.database import HistoryError
from flapd.store.history_reader import HistoryReader
from flapd.store.job_queries import (
    FaultQuery,
    IncidentQuery,
    JobQuery,
    Page,
    StallQuery,
    matches_job_query,
)

MOST_EVIDENCE = 200
"""Faults, stalls and flaps told with one incident: the first of each."""

_T = TypeVar("_T")


class _Listed(NamedTuple):
    """How one kind of item is listed."""

    event: type
    query: type
    page: Callable[[HistoryReader, Any], Page[Any]]
    item: Callable[..., Any]
    list: Callable[..., Any]


_JOBS = _Listed(Job, JobQuery, HistoryReader.jobs, job_item, JobList)
_FAULTS = _Listed(
    Fault,
    FaultQuery,
    HistoryReader.faults,
    lambda fault, _names, **more: fault_item(fault, **more),
    FaultList,
)
_STALLS = _Listed(Stall, StallQuery, HistoryReader.stalls, stall_item, StallList)
_INCIDENTS = _Listed(
    Incident,
    IncidentQuery,
    HistoryReader.incidents,
    lambda incident, _names, **more: incident_item(incident, **more),
    IncidentList,
)


class JobsApi:
    def __init__(
        self,
        agent: Teller,
        executor: Executor,
        naming: Callable[[], Naming] | None = None,
        parameters: tuple[Parameter, ...] = (),
    ) -> None:
        """`naming` is of one node where it is None; `parameters` are those besides each list's."""
        self._agent = agent
        self._executor = executor
        self._naming = naming or (lambda: naming_of(agent.snapshot()))
        self._parameters = parameters

    def routes(self) -> Iterable[Route]:
        yield self._list("jobs", "Jobs seen on this node", _JOBS, JOB_PARAMETERS)
        yield self._list("faults", "What logs and counters tell of jobs", _FAULTS, FAULT_PARAMETERS)
        yield self._list("stalls", "When traffic stood still", _STALLS, STALL_PARAMETERS)
        yield self._list("incidents", "What hurt jobs, and why", _INCIDENTS, INCIDENT_PARAMETERS)
        yield self._one("faults", "One fault", self._fault, FaultItem)
        yield self._one("stalls", "One stall", self._stall, StallItem)
        summary = "One incident with its evidence; of one that became another, that other"
        yield self._one("incidents", summary, self.incident, IncidentDetail)

    def _list(self, name: str, summary: str, listed: _Listed, parameters: tuple[Any, ...]) -> Route:
        async def tell(question: Question) -> web.Response:
            found = await in_thread(self._executor, self._listed, listed, question.values)
            return json_answer(await in_thread(self._executor, encoded_list, found))

        return Route(
            "GET",
            f"/api/v1/{name}",
            f"{summary}, newest first",
            tell,
            listed.list,
            (*self._parameters, *parameters),
            access="jobs",
        )

    def _one(self, name: str, summary: str, find: Callable[[str], Any], kind: Any) -> Route:
        async def tell(question: Question) -> web.Response:
            item_id = question.request.match_info["id"]
            found = await in_thread(self._executor, find, item_id)
            if found is None:
                raise ApiError("not_found", f"there is no {name.removesuffix('s')} {item_id}", "id")
            return json_answer(encoded(found))

        return Route(
            "GET",
            f"/api/v1/{name}/{{id}}",
            summary,
            tell,
            kind,
            (text("id", "the id of an item of the list", "path"),),
            access="jobs",
        )

    def incidents(self, values: Mapping[str, Any]) -> IncidentList:
        """What /incidents lists, by the values of INCIDENT_PARAMETERS."""
        return self._listed(_INCIDENTS, values)  # type: ignore[no-any-return]

    def stalls(self, values: Mapping[str, Any]) -> StallList:
        return self._listed(_STALLS, values)  # type: ignore[no-any-return]

    def faults(self, values: Mapping[str, Any]) -> FaultList:
        return self._listed(_FAULTS, values)  # type: ignore[no-any-return]

    def _listed(self, listed: _Listed, values: Mapping[str, Any]) -> Any:
        """What the disk has not taken yet stands on top of the first page."""
        asked: Any = query(listed.query, values)
        names, waiting = self._naming(), _waiting(self._agent.snapshot().undurable, listed.event)
        page = _asked(lambda: listed.page(self._agent.history, asked))
        items = [listed.item(one, names(one.node)) for one in page.items if one.id not in waiting]
        if asked.cursor is None:
            items[:0] = [
                listed.item(one, names(one.node), durable=False)
                for one in reversed(waiting.values())
                if matches_job_query(asked, one)
            ]
        return listed.list(items, page.next)

    def _fault(self, fault_id: str) -> FaultItem | None:
        found, durable = self._found(Fault, fault_id, self._agent.history.fault)
        return None if found is None else fault_item(found, durable=durable)

    def _stall(self, stall_id: str) -> StallItem | None:
        found, durable = self._found(Stall, stall_id, self._agent.history.stall)
        if found is None:
            return None
        return stall_item(found, self._naming()(found.node), durable=durable)

    def incident(self, incident_id: str) -> IncidentDetail | None:
        """With its evidence; None where there is none of this id."""
        found, durable = self._found(Incident, incident_id, self._agent.history.incident)
        if found is None:
            return None
        evidence = _evidence(found, self._agent.history, self._naming())
        return IncidentDetail(durable=durable, **incident_fields(found), **evidence)

    def _found(
        self, kind: type[_T], item_id: str, kept: Callable[[str], _T | None]
    ) -> tuple[_T | None, bool]:
        """And whether it is on disk."""
        waiting: _T | None = _waiting(self._agent.snapshot().undurable, kind).get(item_id)
        return (kept(item_id), True) if waiting is None else (waiting, False)


def _waiting(undurable: Sequence[Event], kind: type) -> dict[str, Any]:
    """Of this kind, by id."""
    return {event.id: event for event in undurable if isinstance(event, kind)}


def _asked(ask: Callable[[], Page[_T]]) -> Page[_T]:
    """ApiError where the cursor is none of ours."""
    try:
        return ask()
    except HistoryError:
        raise
    except FlapdError as error:
        raise ApiError("bad_parameter", str(error), "cursor") from None


def _evidence(incident: Incident, history: HistoryReader, names: Naming) -> dict[str, Any]:
    """What the incident names, as far as it is kept."""
    symptoms = incident.symptoms[:MOST_EVIDENCE]
    faults = _kept(history.fault, symptoms)
    stalls = _kept(history.stall, symptoms)
    of_causes = (cause.flap for cause in incident.causes)
    named = [*of_causes, *incident.flap_gpu_seconds, *incident.flaps]
    flaps = _kept(history.flap, tuple(dict.fromkeys(named))[:MOST_EVIDENCE])
    losses = history.losses([flap.id for flap in flaps])
    return {
        "flaps": [flap_item(flap, loss=losses.get(flap.id)) for flap in flaps],
        "faults": [fault_item(fault) for fault in faults],
        "stalls": [stall_item(stall, names(stall.node)) for stall in stalls],
        "job_item": _job_of(incident, history, names),
    }


def _kept(find: Callable[[str], _T | None], ids: Sequence[str]) -> list[_T]:
    return [found for found in map(find, ids) if found is not None]


def _job_of(incident: Incident, history: HistoryReader, names: Naming) -> Any:
    if incident.job is None:
        return None
    at = incident.begin_unix_ns
    asked = JobQuery(job=incident.job, since_unix_ns=at, limit=1)
    found = history.jobs(asked).items
    return job_item(found[0], names(found[0].node)) if found else None
