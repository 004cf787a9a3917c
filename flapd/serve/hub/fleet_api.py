"""FleetApi: is the fleet well, and the hub that looks at it."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor

from aiohttp import web

from flapd import __version__
from flapd.model.times import SECOND_NS
from flapd.serve.answers import encoded, in_thread, json_answer
from flapd.serve.hub.items import FleetItem, NodeCounts, StreamItem
from flapd.serve.hub.source import HubSource
from flapd.serve.hub.told import is_silent, node_item, port_counts
from flapd.serve.route import Question, Route
from flapd.store.database import HistoryError
from flapd.store.job_queries import IncidentQuery

MOST_WRONG = 100
MOST_OPEN = 1000


class FleetApi:
    def __init__(self, hub: HubSource, executor: Executor) -> None:
        self._hub = hub
        self._executor = executor

    def routes(self) -> Iterator[Route]:
        summary = "Is the fleet well, and is all of its stream taken"
        yield Route("GET", "/api/v1/fleet", summary, self._tell, FleetItem)

    async def _tell(self, question: Question) -> web.Response:
        sees_jobs = question.sees_jobs
        found = await in_thread(self._executor, fleet_item, self._hub, sees_jobs)
        return json_answer(encoded(found))


def fleet_item(hub: HubSource, sees_jobs: bool) -> FleetItem:
    nodes, now_ns, reasons = hub.fleet.nodes, time.time_ns(), hub.not_ready()
    healths = Counter(view.health for view in nodes)
    heard = [view.heartbeat for view in nodes if view.heartbeat and not is_silent(view)]
    wrong = [view for view in nodes if view.health == "unhealthy"]
    wrong += [view for view in nodes if view.health == "unknown"]
    return FleetItem(
        cluster=hub.cluster,
        version=__version__,
        hub=hub.about.node,
        ready=not reasons,
        reasons=reasons,
        nodes=NodeCounts(len(nodes), healths["healthy"], healths["unhealthy"], healths["unknown"]),
        ports=port_counts(port for beat in heard for port in beat.ports),
        wrong=[node_item(view, now_ns, sees_jobs) for view in wrong[:MOST_WRONG]],
        stream=stream_item(hub, now_ns),
        history_bytes=hub.history.history_bytes(),
        history_durable=not hub.health.events_not_durable,
        incidents_open=_open_incidents(hub) if sees_jobs else None,
    )


def stream_item(hub: HubSource, now_ns: int) -> StreamItem:
    state = hub.consuming
    return StreamItem(
        connected=state.connected,
        server=state.server,
        reason=state.reason or None,
        events=sum(state.events.values()),
        waiting=state.waiting,
        missed=state.missed,
        refused=state.refused,
        lag_seconds=lag_seconds(hub, now_ns),
    )


def lag_seconds(hub: HubSource, now_ns: int) -> float | None:
    """How far what is shown lies behind the stream; None: not known."""
    state = hub.consuming
    if state.waiting == 0 and state.connected:
        return 0.0
    until_ns = state.taken_until_unix_ns
    return None if until_ns is None else max(0, now_ns - until_ns) / SECOND_NS


def _open_incidents(hub: HubSource) -> int | None:
    try:
        found = hub.history.incidents(IncidentQuery(status="open", limit=MOST_OPEN))
    except HistoryError:
        return None
    return len(found.items)
