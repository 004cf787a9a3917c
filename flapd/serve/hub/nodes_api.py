"""NodesApi: the nodes of the fleet, and their ports."""

import bisect
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from itertools import islice
from typing import Any

from aiohttp import web

from flapd.core.fleet import NodeView
from flapd.model.times import SECOND_NS
from flapd.serve.answers import encoded, encoded_list, in_thread, json_answer
from flapd.serve.errors import ApiError
from flapd.serve.hub.items import FleetPort, FleetPortList, NodeItem, NodeList
from flapd.serve.hub.source import HubSource
from flapd.serve.hub.told import find_node, fleet_port, node_item
from flapd.serve.parameter import choice, text
from flapd.serve.query import PAGE_PARAMETERS
from flapd.serve.route import Question, Route
from flapd.store.database import HistoryError

_DAY_NS = 86_400 * SECOND_NS
_NODE = text("node", "the name of a node", "path")
_OF_NODE = text("node", "the name of a node")
_PORT = (
    text("device", "a device such as mlx5_0", "path"),
    text("number", "the number of a port", "path"),
)
_BEHIND = "\n"
"""Between a node and a port in a cursor; it stands in no name."""


class NodesApi:
    def __init__(self, hub: HubSource, executor: Executor) -> None:
        self._hub = hub
        self._executor = executor

    def routes(self) -> Iterable[Route]:
        health = choice("health", ("healthy", "unhealthy", "unknown"))
        nodes = "Every node, by name; `unknown` is one of which nothing was heard for 90 s"
        one = "/api/v1/nodes/{node}"
        parameters = (health, *PAGE_PARAMETERS)
        yield Route("GET", "/api/v1/nodes", nodes, self._nodes, NodeList, parameters)
        yield Route("GET", one, "One node", self._node, NodeItem, (_NODE,))
        ports, of_node = "Ports of all nodes, by node", "Ports of one node"
        parameters = (_OF_NODE, *PAGE_PARAMETERS)
        yield Route("GET", "/api/v1/ports", ports, self._ports, FleetPortList, parameters)
        yield Route("GET", f"{one}/ports", of_node, self._ports_of_node, FleetPortList, (_NODE,))
        yield Route(
            "GET",
            f"{one}/ports/{{device}}/{{number}}",
            "One port of a node",
            self._port,
            FleetPort,
            (_NODE, *_PORT),
        )

    async def _nodes(self, question: Question) -> web.Response:
        page = await in_thread(self._executor, self._node_page, question)
        return json_answer(await in_thread(self._executor, encoded_list, page))

    def _node_page(self, question: Question) -> NodeList:
        return self.page(question.values["health"], question.values, question.sees_jobs)

    def page(self, health: str | None, values: Mapping[str, Any], sees_jobs: bool) -> NodeList:
        """By the values of PAGE_PARAMETERS."""
        limit = values["limit"]
        nodes = _after(self._hub.fleet.nodes, values["cursor"])
        wanted = (view for view in nodes if health in (None, view.health))
        found = list(islice(wanted, limit + 1))
        now_ns = time.time_ns()
        items = [node_item(view, now_ns, sees_jobs) for view in found[:limit]]
        return NodeList(items, items[-1].node if len(found) > limit else None)

    async def _node(self, question: Question) -> web.Response:
        return json_answer(
            encoded(self.node(question.request.match_info["node"], question.sees_jobs))
        )

    def node(self, node: str, sees_jobs: bool) -> NodeItem:
        """ApiError where there is none of this name."""
        return node_item(self._view(node), time.time_ns(), sees_jobs)

    def ports_of(self, node: str) -> list[FleetPort]:
        """ApiError where there is no such node."""
        return list(self._items([self._view(node)]))

    async def _ports(self, question: Question) -> web.Response:
        page = await in_thread(self._executor, self._port_page, question)
        return json_answer(await in_thread(self._executor, encoded_list, page))

    def _port_page(self, question: Question) -> FleetPortList:
        node, limit = question.values["node"], question.values["limit"]
        after, _, place = (question.values["cursor"] or "").partition(_BEHIND)
        port, _, key = place.partition(_BEHIND)
        nodes = self._hub.fleet.nodes if node is None else [self._view(node)]
        begun = (view for view in nodes if view.node >= after)
        found = list(islice(_behind(self._items(begun), (after, port, key)), limit + 1))
        last = found[limit - 1] if len(found) > limit else None
        cursor = None if last is None else _BEHIND.join(_place(last))
        return FleetPortList(found[:limit], cursor)

    async def _ports_of_node(self, question: Question) -> web.Response:
        node = question.request.match_info["node"]
        return json_answer(
            encoded(FleetPortList(await in_thread(self._executor, self.ports_of, node)))
        )

    async def _port(self, question: Question) -> web.Response:
        asked = question.request.match_info
        node, name = asked["node"], f"{asked['device']}/{asked['number']}"
        for item in await in_thread(self._executor, self.ports_of, node):
            if item.port == name:
                return json_answer(encoded(item))
        raise ApiError("not_found", f"{node} tells of no port {name}", "number")

    def _view(self, node: str) -> NodeView:
        found = find_node(self._hub.fleet.nodes, node)
        if found is None:
            raise ApiError("not_found", f"there is no node {node}", "node")
        return found

    def _items(self, nodes: Iterable[NodeView]) -> Iterator[FleetPort]:
        now_ns = time.time_ns()
        for view in nodes:
            beat = view.heartbeat
            flaps = None if beat is None else self._flaps(view.node, now_ns)
            for port in sorted(
                () if beat is None else beat.ports, key=lambda one: (one.port, one.key)
            ):
                peer = self._hub.peer_of(view.node, port.port, port.guid)
                count = None if flaps is None else flaps.get(port.key, 0)
                yield fleet_port(view, port, peer, count, now_ns)

    def _flaps(self, node: str, now_ns: int) -> dict[str, int] | None:
        """Of the last day; None: the history cannot be read."""
        try:
            return self._hub.history.flaps_per_port(now_ns - _DAY_NS, node)
        except HistoryError:
            return None


def _name(view: NodeView) -> str:
    return view.node


def _after(nodes: Sequence[NodeView], cursor: str | None) -> Sequence[NodeView]:
    return nodes if cursor is None else nodes[bisect.bisect_right(nodes, cursor, key=_name) :]


def _place(port: FleetPort) -> tuple[str, str, str]:
    """In the list of all; members of a bond have one name."""
    return port.node, port.port, port.id


def _behind(items: Iterator[FleetPort], place: tuple[str, str, str]) -> Iterator[FleetPort]:
    return (item for item in items if _place(item) > place)
