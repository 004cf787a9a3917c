"""ProbesApi: what machines ask again and again: alive, ready, metrics."""

import time
from collections.abc import Iterable
from concurrent.futures import Executor

import msgspec
from aiohttp import hdrs, web

from flapd import __version__
from flapd.serve.agent import Agent
from flapd.serve.answers import encoded, in_thread, json_answer
from flapd.serve.errors import STATUS, ErrorAnswer, ErrorBody
from flapd.serve.metrics import Scrape, render
from flapd.serve.route import Question, Route
from flapd.serve.settings import CounterChoice


class Alive(msgspec.Struct, frozen=True):
    status: str
    node: str
    version: str


class Ready(msgspec.Struct, frozen=True):
    status: str
    reasons: list[str]
    fleet: str | None = None
    """`connected`, or why not, which does not make it less ready; None: it tells no fleet."""


class ProbesApi:
    def __init__(self, agent: Agent, executor: Executor, counters: CounterChoice) -> None:
        self._agent = agent
        self._executor = executor
        self._counters = counters

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
        return json_answer(encoded(Alive("ok", self._agent.about.node, __version__)))

    async def _readyz(self, _question: Question) -> web.Response:
        reasons = self._agent.not_ready()
        if not reasons:
            fleet = self._agent.health.fleet
            told = None if fleet is None else fleet.how()
            return json_answer(encoded(Ready("ready", [], told)))
        error = ErrorBody("unavailable", "; ".join(reasons), None)
        return json_answer(encoded(ErrorAnswer(error, reasons)), STATUS["unavailable"])

    async def _metrics(self, question: Question) -> web.Response:
        accept = ",".join(question.request.headers.getall(hdrs.ACCEPT, []))
        sees_jobs = question.sees_jobs
        body, content_type = await in_thread(self._executor, self._render, accept, sees_jobs)
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})

    def _render(self, accept: str, sees_jobs: bool) -> tuple[bytes, str]:
        agent = self._agent
        scrape = Scrape(
            agent.snapshot(),
            agent.health,
            time.monotonic_ns(),
            agent.history.history_bytes(),
            self._counters,
            sees_jobs,
        )
        return render(scrape, accept)
