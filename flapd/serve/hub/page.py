"""HubPages: the on-call page of a fleet."""

import time
from collections.abc import Iterable
from concurrent.futures import Executor

from flapd.core.cost.settings import CostSettings
from flapd.model.times import SECOND_NS
from flapd.serve.access import Gate
from flapd.serve.errors import ApiError
from flapd.serve.flaps_api import span_summary
from flapd.serve.hub.fleet_api import fleet_item
from flapd.serve.hub.front import (
    Front,
    fleet_port_page,
    front,
    front_title,
    node_page,
    node_table,
)
from flapd.serve.hub.nodes_api import NodesApi
from flapd.serve.hub.past import FleetPast
from flapd.serve.hub.source import HubSource
from flapd.serve.items import FlapItem
from flapd.serve.jobs_api import JobsApi
from flapd.serve.page.api import Parameters, PastPages
from flapd.serve.page.gather import FRONT_FLAPS, FRONT_INCIDENTS, PORT_FLAPS, unless_unreadable
from flapd.serve.page.html import Child, Html, element
from flapd.serve.page.parts import section
from flapd.serve.parameter import text
from flapd.serve.query import PAGE_PARAMETERS
from flapd.serve.route import Question, Route
from flapd.serve.summary_item import SummaryItem
from flapd.store.flap_query import FlapQuery

_DAY_NS = 86_400 * SECOND_NS
_DAY_AGE_SHARE = 20
"""The sums of the last day are worked out anew after so many times what that took."""
_NODE = text("node", "the name of a node", "path")
_PORT = (
    text("device", "a node and a device, such as gpu-17 mlx5_0", "path"),
    text("number", "the number of a port", "path"),
)


class HubPages(PastPages):
    def __init__(
        self,
        hub: HubSource,
        nodes: NodesApi,
        jobs: JobsApi,
        executor: Executor,
        gate: Gate,
        cost: CostSettings,
        parameters: Parameters,
    ) -> None:
        self._fleet_past = FleetPast(hub, jobs)
        super().__init__(self._fleet_past, executor, gate, parameters)
        self._hub = hub
        self._nodes = nodes
        self._cost = cost
        self._days: dict[bool, tuple[float, SummaryItem]] = {}
        """By whether jobs are seen: until when it holds (monotonic), and the sums."""

    def routes(self) -> Iterable[Route]:
        yield self.route("/", "The on-call page of the fleet", self._front)
        yield self.route("/nodes", "Nodes", self._all_nodes, PAGE_PARAMETERS)
        yield self.route("/nodes/{node}", "One node", self._node, (_NODE,))
        yield self.route("/ports/{device}/{number}", "One port of a node", self._port, _PORT)
        yield from super().routes()

    def _front(self, question: Question) -> Html:
        sees_jobs, past = question.sees_jobs, self._fleet_past
        query = FlapQuery(limit=FRONT_FLAPS)
        told = Front(
            fleet=fleet_item(self._hub, sees_jobs),
            flaps=unless_unreadable(lambda: past.flaps(query, sees_jobs).items),
            incidents=unless_unreadable(lambda: past.last_incidents(FRONT_INCIDENTS))
            if sees_jobs
            else None,
            day=unless_unreadable(lambda: self._day(sees_jobs)),
        )
        heading = element("h1", f"flapd, {past.node}", class_="unseen")
        return self.document(front_title(told.fleet), question, heading, front(told, sees_jobs))

    def _day(self, sees_jobs: bool) -> SummaryItem:
        """Of a fleet that is hit hard it is millions of rows: looking must not load the hub."""
        began = time.monotonic()
        until, kept = self._days.get(sees_jobs, (0.0, None))
        if kept is not None and began < until:
            return kept
        now_ns = time.time_ns()
        span = (now_ns - _DAY_NS, now_ns)
        day = span_summary(self._hub.history, span, sees_jobs, self._cost, of_fleet=True)
        took = time.monotonic() - began
        self._days[sees_jobs] = (began + _DAY_AGE_SHARE * took, day)
        return day

    def _all_nodes(self, question: Question) -> Html:
        found = self._nodes.page(None, question.values, question.sees_jobs)
        older: Child = None
        if found.next is not None:
            to = str(question.request.rel_url.update_query(cursor=found.next))
            older = element("p", element("a", "more", href=to, rel="next"))
        heading = element("h1", "Nodes", class_="unseen")
        shown = node_table(found.items, "No node was heard of yet.")
        return self.document("Nodes", question, heading, section("list", "Nodes", shown, older))

    def _node(self, question: Question) -> Html:
        node = question.request.match_info["node"]
        item = self._nodes.node(node, question.sees_jobs)
        flaps = self._flaps_of(FlapQuery(node=node, limit=PORT_FLAPS), question)
        content = node_page(item, self._nodes.ports_of(node), flaps, question.sees_jobs)
        return self.document(node, question, content)

    def _port(self, question: Question) -> Html:
        asked = question.request.match_info
        node, _, device = asked["device"].rpartition(" ")
        name = f"{device}/{asked['number']}"
        if not node:
            raise ApiError("not_found", f"many nodes have a port {name}: see /nodes")
        ports = [port for port in self._nodes.ports_of(node) if port.port == name]
        if not ports:
            raise ApiError("not_found", f"{node} tells of no port {name}", "number")
        flaps = self._flaps_of(FlapQuery(node=node, port=name, limit=PORT_FLAPS), question)
        content = fleet_port_page(ports[0], flaps, question.sees_jobs)
        return self.document(f"{node} {name}", question, content)

    def _flaps_of(self, query: FlapQuery, question: Question) -> list[FlapItem]:
        return self._fleet_past.flaps(query, question.sees_jobs).items
