"""DrainsApi: which nodes should run no job, and how many of them may be taken out at one time.

It is worked out anew for each question from what is known, and nothing is remembered of who asked:
so two hubs that know the same say the same, and a scheduler that asks for every node of a cluster
takes out no more than the cap.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Executor
from itertools import islice
from typing import NamedTuple

from aiohttp import web

from flapd.core.fabric.view import COUNTED_CAUSES
from flapd.core.fleet import NodeView
from flapd.model.event import Outage
from flapd.serve.answers import encoded, in_thread, json_answer
from flapd.serve.hub.items import DrainItem, DrainList
from flapd.serve.hub.source import HubSource
from flapd.serve.hub.told import is_silent
from flapd.serve.parameter import span, text, whole
from flapd.serve.query import LARGEST_LIMIT
from flapd.serve.route import Question, Route
from flapd.store.flap_query import FlapQuery
from flapd.store.pages import every

MOST_FLAPS = 100_000
"""Of a fleet that flaps more often the newest tell enough."""


class _Wanted(NamedTuple):
    downs: int
    node: str
    reason: str


class DrainsApi:
    def __init__(self, hub: HubSource, executor: Executor, most: int) -> None:
        """`most` nodes may be taken out at one time."""
        self._hub = hub
        self._executor = executor
        self._most = most

    def routes(self) -> Iterator[Route]:
        yield Route(
            "GET",
            "/api/v1/drains",
            "Nodes that should run no job, and which of them may be taken out now",
            self._tell,
            DrainList,
            (
                text("node", "the name of a node"),
                whole("max_flaps", 0, 1_000_000, 3),
                span("window", default="1h", shortest="1s", longest="366d"),
            ),
        )

    async def _tell(self, question: Question) -> web.Response:
        asked = question.values
        found = await in_thread(
            self._executor, self._drains, asked["node"], asked["max_flaps"], asked["window"]
        )
        return json_answer(encoded(found))

    def _drains(self, node: str | None, max_flaps: int, window_ns: int) -> DrainList:
        nodes = {view.node: view for view in self._hub.fleet.nodes}
        wanted = sorted(self._wanted(nodes, max_flaps, window_ns), key=_worst_first)
        items = [
            DrainItem(one.node, one.reason, place < self._most) for place, one in enumerate(wanted)
        ]
        of_node = next((item for item in items if item.node == node), None)
        known = node in nodes and not is_silent(nodes[node])
        return DrainList(items, self._most, of_node, known)

    def _wanted(
        self, nodes: dict[str, NodeView], max_flaps: int, window_ns: int
    ) -> Iterator[_Wanted]:
        downs = self._downs(window_ns)
        for node, view in nodes.items():
            if is_silent(view) or view.heartbeat is None:
                continue
            for port in view.heartbeat.ports:
                if port.maintenance or port.grace:
                    continue
                count = downs[node, port.key]
                if port.flapping:
                    yield _Wanted(count, node, f"{port.port} is flapping, with {count} downs")
                elif count > max_flaps:
                    yield _Wanted(count, node, f"{port.port} went down {count} times")
                else:
                    continue
                break

    def _downs(self, window_ns: int) -> dict[tuple[str, str], int]:
        """By node and port, without those that many ports had together."""
        downs: dict[tuple[str, str], int] = defaultdict(int)
        for outage in self._outages(time.time_ns() - window_ns):
            is_its_own = outage.cause in COUNTED_CAUSES and not outage.grace
            if is_its_own and self._hub.shared_cause_of(outage.id) is None:
                downs[outage.node, outage.key] += outage.count
        return downs

    def _outages(self, since_ns: int) -> Iterator[Outage]:
        query = FlapQuery(since_unix_ns=since_ns, limit=LARGEST_LIMIT)
        return islice(every(self._hub.history.flaps, query), MOST_FLAPS)


def _worst_first(one: _Wanted) -> tuple[int, str]:
    return -one.downs, one.node
