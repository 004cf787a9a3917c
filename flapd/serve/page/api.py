"""PageApi: the on-call page: pages for people, and the files they are made of."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any

from aiohttp import hdrs, web

from flapd.core.cost.settings import CostSettings
from flapd.model.times import SECOND_NS
from flapd.serve.access import CHALLENGES, Gate
from flapd.serve.agent import Agent
from flapd.serve.answers import encoded, in_thread, json_answer
from flapd.serve.errors import STATUS, ApiError
from flapd.serve.jobs_api import JobsApi
from flapd.serve.page.assets import ASSET_TYPES, asset
from flapd.serve.page.concerns import concerns
from flapd.serve.page.frame import document
from flapd.serve.page.front import front, front_title
from flapd.serve.page.gather import PORT_FLAPS, Gather, black_box_charts
from flapd.serve.page.html import Child, Html, element
from flapd.serve.page.incident import incident_page, incident_title
from flapd.serve.page.lists import flap_table, incident_table
from flapd.serve.page.marks import MarkList
from flapd.serve.page.parts import section
from flapd.serve.page.port import flap_page, port_page
from flapd.serve.parameter import text
from flapd.serve.query import (
    FLAP_PARAMETERS,
    INCIDENT_PARAMETERS,
    SPAN_PARAMETERS,
    flap_query,
    refuse_backwards,
)
from flapd.serve.route import Question, Route
from flapd.store.flap_query import FlapQuery

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_DAY_NS = 86_400 * SECOND_NS
_CHARTS = ("charts.js",)
_TIMELINE = ("timeline.js",)
_ID = text("id", "the id of an item of the list", "path")
_PORT = (
    text("device", "a device such as mlx5_0", "path"),
    text("number", "the number of a port", "path"),
)

_Page = Callable[[Question], Html]


class PageApi:
    def __init__(
        self, agent: Agent, executor: Executor, gate: Gate, jobs: JobsApi, cost: CostSettings
    ) -> None:
        self._gather = Gather(agent, jobs, cost)
        self._executor = executor
        self._gate = gate

    def routes(self) -> Iterable[Route]:
        yield self._route("/", "The on-call page", self._front)
        yield self._route("/incidents", "Incidents", self._incidents, INCIDENT_PARAMETERS)
        yield self._route("/incidents/{id}", "One incident", self._incident, (_ID,))
        yield self._route("/flaps", "Outages", self._flaps, FLAP_PARAMETERS)
        yield self._route("/flaps/{id}", "One outage", self._flap, (_ID,))
        yield self._route("/ports/{device}/{number}", "One port", self._port, _PORT)
        yield Route(
            "GET",
            "/timeline",
            "What the timeline of the page draws, in a span; of the last 24 h where none is given",
            self._timeline,
            MarkList,
            SPAN_PARAMETERS,
        )
        yield Route(
            "GET",
            "/page/{file}",
            "A file of the page",
            _file,
            None,
            (text("file", "a file of the page", "path"),),
            streams=ASSET_TYPES,
        )

    def _route(self, path: str, what: str, page: _Page, parameters: tuple[Any, ...] = ()) -> Route:
        async def tell(question: Question) -> web.Response:
            try:
                body = await in_thread(self._executor, page, question)
            except ApiError as error:
                if "text/html" not in question.request.headers.get(hdrs.ACCEPT, ""):
                    raise
                return self._refused(error, question)
            return _html(body)

        summary = f"{what}, as HTML"
        return Route("GET", path, summary, tell, None, parameters, streams=("text/html",))

    def _refused(self, error: ApiError, question: Question) -> web.Response:
        """For people; a browser asks for the token on 401 and shows this where there is none."""
        says = element("p", f"{error}.", class_="verdict bad")
        title = STATUS[error.code].phrase
        body = self._document(title, question, element("h1", title), says)
        answer = _html(body, STATUS[error.code])
        if error.code == "unauthorized":
            for challenge in CHALLENGES:
                answer.headers.add(hdrs.WWW_AUTHENTICATE, challenge)
        return answer

    def _document(
        self, title: str, question: Question, *content: Child, scripts: tuple[str, ...] = ()
    ) -> Html:
        return document(self._gather.node, title, question.sees_jobs, *content, scripts=scripts)

    def _front(self, question: Question) -> Html:
        told = self._gather.front(question.sees_jobs)
        found = concerns(told.status, told.ports, question.sees_jobs)
        heading = element("h1", f"flapd on {self._gather.node}", class_="unseen")
        content = front(told, found, question.sees_jobs)
        return self._document(front_title(found), question, heading, content, scripts=_TIMELINE)

    def _incidents(self, question: Question) -> Html:
        self._require_jobs(question)
        found = self._gather.incidents(question.values)
        shown = incident_table(found.items, "No incident matches.")
        return self._list("Incidents", question, shown, found.next)

    def _incident(self, question: Question) -> Html:
        self._require_jobs(question)
        found = self._gather.incident(question.request.match_info["id"])
        content = incident_page(found, self._gather.ports_by_name())
        return self._document(incident_title(found), question, content, scripts=_TIMELINE)

    async def _timeline(self, question: Question) -> web.Response:
        now_ns = time.time_ns()
        since, until = question.values["since"], question.values["until"]
        span = (now_ns - _DAY_NS if since is None else since, now_ns if until is None else until)
        refuse_backwards(*span)
        found = await in_thread(self._executor, self._gather.marks, *span, question.sees_jobs)
        return json_answer(await in_thread(self._executor, encoded, found))

    def _require_jobs(self, question: Question) -> None:
        if not question.sees_jobs:
            raise self._gate.refusal()

    def _flaps(self, question: Question) -> Html:
        found = self._gather.flaps(flap_query(question.values), question.sees_jobs)
        shown = flap_table(found.items, question.sees_jobs, "No outage matches.")
        return self._list("Outages", question, shown, found.next)

    def _list(self, title: str, question: Question, shown: Html, cursor: str | None) -> Html:
        older: Child = None
        if cursor is not None:
            to = str(question.request.rel_url.update_query(cursor=cursor))
            older = element("p", element("a", "older", href=to, rel="next"))
        heading = element("h1", title, class_="unseen")
        return self._document(title, question, heading, section("list", title, shown, older))

    def _flap(self, question: Question) -> Html:
        found = self._gather.flap(question.request.match_info["id"], question.sees_jobs)
        content = flap_page(found.item, found.port, question.sees_jobs, black_box_charts(found))
        return self._document(f"Outage of {found.item.port}", question, content, scripts=_CHARTS)

    def _port(self, question: Question) -> Html:
        asked = question.request.match_info
        item, view = self._gather.port(f"{asked['device']}/{asked['number']}")
        query = FlapQuery(port=item.port, limit=PORT_FLAPS)
        flaps = self._gather.flaps(query, question.sees_jobs)
        content = port_page(item, flaps.items, question.sees_jobs, self._gather.ring(view))
        return self._document(item.port, question, content, scripts=_CHARTS)


def _html(body: Html, status: int = 200) -> web.Response:
    headers = {**_HEADERS, hdrs.CACHE_CONTROL: "no-store"}
    return web.Response(
        text=body, status=status, content_type="text/html", charset="utf-8", headers=headers
    )


async def _file(question: Question) -> web.Response:
    """Asked for anew each time and sent where it changed: an upgrade must not meet old scripts."""
    found = asset(question.request.match_info["file"])
    if found is None:
        raise ApiError("not_found", "the page has no such file", "file")
    answer = web.Response(
        body=found.body, content_type=found.content_type, charset="utf-8", headers=_HEADERS
    )
    answer.headers[hdrs.CACHE_CONTROL] = "no-cache"
    answer.etag = found.tag
    known = question.request.if_none_match or ()
    if any(tag.value == found.tag for tag in known):
        answer.set_status(304)
        answer.body = None
    return answer
