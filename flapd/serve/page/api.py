"""PageApi: the on-call page: pages for people, and the files they are made of."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor

from aiohttp import hdrs, web

from flapd.core.cost.settings import CostSettings
from flapd.model.times import SECOND_NS
from flapd.serve.access import CHALLENGES, Gate
from flapd.serve.agent import Agent
from flapd.serve.answers import encoded, in_thread
from flapd.serve.errors import STATUS, ApiError
from flapd.serve.jobs_api import JobsApi
from flapd.serve.page.assets import ASSET_TYPES, asset
from flapd.serve.page.concerns import concerns
from flapd.serve.page.frame import document
from flapd.serve.page.front import front, front_title
from flapd.serve.page.gather import PORT_FLAPS, Gather, PastSource, black_box_charts
from flapd.serve.page.html import Child, Html, element
from flapd.serve.page.incident import incident_page, incident_title
from flapd.serve.page.lists import flap_table, incident_table
from flapd.serve.page.marks import MarkList
from flapd.serve.page.parts import section
from flapd.serve.page.port import flap_page, port_page
from flapd.serve.parameter import Parameter, text
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
TIMELINE = ("timeline.js",)
_ID = text("id", "the id of an item of the list", "path")
_PORT = (
    text("device", "a device such as mlx5_0", "path"),
    text("number", "the number of a port", "path"),
)

Page = Callable[[Question], Html]
Parameters = tuple[Parameter, ...]


class PastPages:
    """Pages of what happened, and what all pages stand on."""

    def __init__(
        self, past: PastSource, executor: Executor, gate: Gate, parameters: Parameters = ()
    ) -> None:
        """`parameters` narrow lists down, besides those of each."""
        self._past = past
        self._executor = executor
        self._gate = gate
        self._parameters = parameters

    def routes(self) -> Iterable[Route]:
        of_incidents = (*self._parameters, *INCIDENT_PARAMETERS)
        of_flaps = (*self._parameters, *FLAP_PARAMETERS)
        yield self.route("/incidents", "Incidents", self._incidents, of_incidents)
        yield self.route("/incidents/{id}", "One incident", self._incident, (_ID,))
        yield self.route("/flaps", "Outages", self._flaps, of_flaps)
        yield self.route("/flaps/{id}", "One outage", self._flap, (_ID,))
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

    def route(self, path: str, what: str, page: Page, parameters: Parameters = ()) -> Route:
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
        body = self.document(title, question, element("h1", title), says)
        answer = _html(body, STATUS[error.code])
        if error.code == "unauthorized":
            for challenge in CHALLENGES:
                answer.headers.add(hdrs.WWW_AUTHENTICATE, challenge)
        return answer

    def document(
        self, title: str, question: Question, *content: Child, scripts: tuple[str, ...] = ()
    ) -> Html:
        return document(self._past.node, title, question.sees_jobs, *content, scripts=scripts)

    def _incidents(self, question: Question) -> Html:
        self._require_jobs(question)
        found = self._past.incidents(question.values)
        shown = incident_table(found.items, "No incident matches.")
        return self._list("Incidents", question, shown, found.next)

    def _incident(self, question: Question) -> Html:
        self._require_jobs(question)
        found = self._past.incident(question.request.match_info["id"])
        content = incident_page(found, self._past.ports_by_name())
        return self.document(incident_title(found), question, content, scripts=TIMELINE)

    async def _timeline(self, question: Question) -> web.Response:
        now_ns = time.time_ns()
        since, until = question.values["since"], question.values["until"]
        span = (now_ns - _DAY_NS if since is None else since, now_ns if until is None else until)
        refuse_backwards(*span)
        found = await in_thread(self._executor, self._past.marks, *span, question.sees_jobs)
        return self._packed(await in_thread(self._executor, encoded, found))

    def _packed(self, body: bytes) -> web.Response:
        """A thousand marks say much the same a thousand times; packed beside the loop."""
        answer = web.Response(
            body=body,
            content_type="application/json",
            zlib_executor_size=0,
            zlib_executor=self._executor,
        )
        answer.enable_compression()
        return answer

    def _require_jobs(self, question: Question) -> None:
        if not question.sees_jobs:
            raise self._gate.refusal()

    def _flaps(self, question: Question) -> Html:
        found = self._past.flaps(flap_query(question.values), question.sees_jobs)
        shown = flap_table(found.items, question.sees_jobs, "No outage matches.")
        return self._list("Outages", question, shown, found.next)

    def _list(self, title: str, question: Question, shown: Html, cursor: str | None) -> Html:
        older: Child = None
        if cursor is not None:
            to = str(question.request.rel_url.update_query(cursor=cursor))
            older = element("p", element("a", "older", href=to, rel="next"))
        heading = element("h1", title, class_="unseen")
        return self.document(title, question, heading, section("list", title, shown, older))

    def _flap(self, question: Question) -> Html:
        found = self._past.flap(question.request.match_info["id"], question.sees_jobs)
        content = flap_page(found.item, found.port, question.sees_jobs, black_box_charts(found))
        return self.document(f"Outage of {found.item.port}", question, content, scripts=_CHARTS)


class PageApi(PastPages):
    """Of an agent."""

    def __init__(
        self, agent: Agent, executor: Executor, gate: Gate, jobs: JobsApi, cost: CostSettings
    ) -> None:
        self._gather = Gather(agent, jobs, cost)
        super().__init__(self._gather, executor, gate)

    def routes(self) -> Iterable[Route]:
        yield self.route("/", "The on-call page", self._front)
        yield self.route("/ports/{device}/{number}", "One port", self._port, _PORT)
        yield from super().routes()

    def _front(self, question: Question) -> Html:
        told = self._gather.front(question.sees_jobs)
        found = concerns(told.status, told.ports, question.sees_jobs)
        heading = element("h1", f"flapd on {self._gather.node}", class_="unseen")
        content = front(told, found, question.sees_jobs)
        return self.document(front_title(found), question, heading, content, scripts=TIMELINE)

    def _port(self, question: Question) -> Html:
        asked = question.request.match_info
        item, view = self._gather.port(f"{asked['device']}/{asked['number']}")
        query = FlapQuery(port=item.port, limit=PORT_FLAPS)
        flaps = self._gather.flaps(query, question.sees_jobs)
        content = port_page(item, flaps.items, question.sees_jobs, self._gather.ring(view))
        return self.document(item.port, question, content, scripts=_CHARTS)


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
