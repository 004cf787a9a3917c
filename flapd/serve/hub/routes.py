"""Routes of a hub: everything that one of its listeners answers."""

from concurrent.futures import Executor

from aiohttp import web

from flapd.serve.access import Gate
from flapd.serve.budget_api import BudgetApi
from flapd.serve.cost_api import CostApi
from flapd.serve.flaps_api import FlapsApi
from flapd.serve.hub.budget import seen_by_hub
from flapd.serve.hub.drains import DrainsApi
from flapd.serve.hub.elsewhere import elsewhere
from flapd.serve.hub.fleet_api import FleetApi
from flapd.serve.hub.metrics import render_hub
from flapd.serve.hub.nodes_api import NodesApi
from flapd.serve.hub.page import HubPages
from flapd.serve.hub.source import HubSource
from flapd.serve.hub.told import change_item, naming_of_nodes
from flapd.serve.jobs_api import JobsApi
from flapd.serve.parameter import text
from flapd.serve.probes import ProbesApi
from flapd.serve.query import FLAP_PARAMETERS
from flapd.serve.routes import Api, add_routes, empty_app
from flapd.serve.server import BuildApp
from flapd.serve.settings import Prices
from flapd.serve.stream import Names, StreamApi
from flapd.serve.told_jobs import Naming

_NODE = text("node", "the name of a node")


def hub_app(hub: HubSource, max_drains: int, prices: Prices) -> BuildApp:
    """`max_drains` nodes may be called unhealthy at one time."""
    return lambda executor, gate, _local: _app(hub, executor, gate, max_drains, prices)


def _app(
    hub: HubSource, executor: Executor, gate: Gate, max_drains: int, prices: Prices
) -> web.Application:
    def naming() -> Naming:
        return naming_of_nodes(hub.fleet.nodes)

    stream = StreamApi(hub, executor, lambda: Names(change_item, naming()))
    jobs = JobsApi(hub, executor, naming, (_NODE,))
    nodes = NodesApi(hub, executor)
    apis: list[Api] = [
        nodes,
        HubPages(hub, nodes, jobs, executor, gate, prices.cost, (_NODE,)),
        FleetApi(hub, executor),
        FlapsApi(hub, executor, prices.cost, (_NODE, *FLAP_PARAMETERS), of_fleet=True),
        jobs,
        stream,
        CostApi(prices.job, prices.cost),
        BudgetApi(seen_by_hub(hub), executor, prices, of_fleet=True),
        DrainsApi(hub, executor, max_drains),
        ProbesApi(
            hub,
            executor,
            lambda accept, _sees_jobs: render_hub(hub, accept),
            cluster=hub.cluster,
        ),
    ]
    app = empty_app()
    app.on_startup.append(stream.open)
    app.on_shutdown.append(stream.close)
    add_routes(app, gate, [route for api in apis for route in api.routes()])
    app.add_routes(elsewhere())
    return app
