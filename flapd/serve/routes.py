"""Routes: everything that one listener answers."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Protocol

from aiohttp import web

from flapd.serve.access import Gate
from flapd.serve.agent import Agent
from flapd.serve.answers import encoded, errors_as_json, json_answer
from flapd.serve.budget_api import BudgetApi, seen_by_agent
from flapd.serve.control import ControlApi
from flapd.serve.cost_api import CostApi
from flapd.serve.flaps_api import FlapsApi
from flapd.serve.jobs_api import JobsApi
from flapd.serve.openapi import document
from flapd.serve.page.api import PageApi
from flapd.serve.ports_api import PortsApi, names_now
from flapd.serve.probes import ProbesApi, scraped, told_to_fleet
from flapd.serve.recording import RecordingApi
from flapd.serve.route import LARGEST_BODY_BYTES, Question, Route, wired
from flapd.serve.settings import USUAL_PRICES, CounterChoice, Prices
from flapd.serve.status import StatusApi
from flapd.serve.stream import StreamApi


class Api(Protocol):
    def routes(self) -> Iterable[Route]: ...


def build_app(
    agent: Agent,
    executor: Executor,
    gate: Gate,
    counters: CounterChoice,
    *,
    local: bool,
    prices: Prices = USUAL_PRICES,
) -> web.Application:
    """An application with all routes; those that change something only where `local`."""
    stream = StreamApi(agent, executor, partial(names_now, agent))
    jobs = JobsApi(agent, executor)
    apis: list[Api] = [
        PortsApi(agent, executor),
        FlapsApi(agent, executor, prices.cost),
        jobs,
        stream,
        CostApi(prices.job, prices.cost, lambda: agent.snapshot().incidents.retries),
        BudgetApi(seen_by_agent(agent), executor, prices),
        ProbesApi(agent, executor, scraped(agent, counters), told_to_fleet(agent)),
        PageApi(agent, executor, gate, jobs, prices.cost),
    ]
    app = empty_app()
    app.on_startup.append(stream.open)
    app.on_shutdown.append(stream.close)
    if local:
        recording = RecordingApi(agent, executor)
        app.cleanup_ctx.append(recording.end_unread)
        apis += [StatusApi(agent, executor), ControlApi(agent, executor), recording]
    add_routes(app, gate, [route for api in apis for route in api.routes()])
    return app


def empty_app() -> web.Application:
    return web.Application(middlewares=[errors_as_json], client_max_size=LARGEST_BODY_BYTES)


def add_routes(app: web.Application, gate: Gate, routes: Sequence[Route]) -> None:
    """These routes, and the one that describes them all."""
    every = [*routes, openapi_route(routes)]
    app.add_routes(wired(route, gate) for route in every)


def openapi_route(routes: Sequence[Route]) -> Route:
    async def tell(_question: Question) -> web.Response:
        return json_answer(body)

    described = Route("GET", "/api/v1/openapi.json", "This description", tell, dict)
    body = encoded(document([*routes, described]))
    return described
