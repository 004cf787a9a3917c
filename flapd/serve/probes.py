"""ProbesApi: what machines ask again and again: alive, ready, metrics."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor

import msgspec
from aiohttp import hdrs, web

from flapd import __version__
from flapd.serve.agent import Agent, Teller
from flapd.serve.answers import encoded, in_thread, json_answer
from flapd.serve.errors import STATUS, ErrorAnswer, ErrorBody
from flapd.serve.metrics import Scrape, render
from flapd.serve.route import Question, Route
from flapd.serve.settings import CounterChoice

Render = Callable[[str, bool], tuple[bytes, str]]
"""Metrics and their content type, by what is accepted, and whether jobs may be seen."""


class Alive(msgspec.Struct, frozen=True):
    status: str
    node: str
    version: str
    cluster: str | None = None
    """Of which it tells all nodes; None: it is the agent of this node alone."""


class Ready(msgspec.Struct, frozen=True):
    status: str
    reasons: list[str]
    fleet: str | None = None
    """`connected`, or why not, which does not make it less ready; None: it tells no fleet."""


class ProbesApi:
    def __init__(
        self,
        agent: Teller,
        executor: Executor,
        render: Render,
        fleet: Callable[[], str | None] = lambda: None,
        cluster: str | None = None,
    ) -> None:
        """`fleet`: how telling the fleet goes, None where there is none to be told.

        `cluster` is that of a hub.
        """
        self._cluster = cluster
        self._agent = agent
        self._executor = executor
        self._render = render
        self._fleet = fleet

    def routes(self) -> Iterable[Route]:
        return (
            Route("GET", "/healthz", "The process lives", self._healthz, Alive),
            Route(
                "GET",
                "/readyz",
                "Every watched port was read or is known unreadable; else 503 and why not",
                self._readyz,
                Ready,
            ),
            Route(
                "GET",
                "/metrics",
                "Prometheus text, or OpenMetrics where it is accepted",
                self._metrics,
                None,
                streams=("text/plain", "application/openmetrics-text"),
            ),
        )

    async def _healthz(self, _question: Question) -> web.Response:
        return json_answer(encoded(Alive("ok", self._agent.about.node, __version__, self._cluster)))

    async def _readyz(self, _question: Question) -> web.Response:
        reasons = self._agent.not_ready()
        if not reasons:
            return json_answer(encoded(Ready("ready", [], self._fleet())))
        error = ErrorBody("unavailable", "; ".join(reasons), None)
        return json_answer(encoded(ErrorAnswer(error, reasons)), STATUS["unavailable"])

    async def _metrics(self, question: Question) -> web.Response:
        accept = ",".join(question.request.headers.getall(hdrs.ACCEPT, []))
        sees_jobs = question.sees_jobs
        body, content_type = await in_thread(self._executor, self._render, accept, sees_jobs)
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})


def scraped(agent: Agent, counters: CounterChoice) -> Render:
    """Metrics of an agent."""

    def tell(accept: str, sees_jobs: bool) -> tuple[bytes, str]:
        scrape = Scrape(
            agent.snapshot(),
            agent.health,
            time.monotonic_ns(),
            agent.history.history_bytes(),
            counters,
            sees_jobs,
        )
        return render(scrape, accept)

    return tell


def told_to_fleet(agent: Agent) -> Callable[[], str | None]:
    """How that goes, in words."""

    def tell() -> str | None:
        fleet = agent.health.fleet
        return None if fleet is None else fleet.how()

    return tell
