"""Api: the questions that change nothing."""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor

from aiohttp import hdrs, web

from flapd import __version__
from flapd.core.fabric.view import Snapshot
from flapd.model.errors import FlapdError
from flapd.model.event import Outage
from flapd.model.times import SECOND_NS
from flapd.serve.agent import Agent
from flapd.serve.answers import encoded, encoded_list, in_thread, json_answer
from flapd.serve.errors import STATUS, ApiError, ErrorAnswer, ErrorBody
from flapd.serve.items import FlapDetail, FlapList, PortList, flap_item, port_item
from flapd.serve.metrics import Scrape, render
from flapd.serve.query import FLAP_PARAMETERS, flap_query, single_values
from flapd.store.database import HistoryError
from flapd.store.flap_query import FlapQuery, matches
from flapd.store.history_reader import HistoryReader

_DAY_NS = 86_400 * SECOND_NS


class Api:
    """Handlers; what reads the history or renders much runs in `executor`."""

    def __init__(self, agent: Agent, executor: Executor) -> None:
        self._agent = agent
        self._executor = executor

    def routes(self) -> Iterable[web.RouteDef]:
        return (
            web.get("/api/v1/ports", self._ports),
            web.get("/api/v1/flaps", self._flaps),
            web.get("/api/v1/flaps/{id}", self._flap),
            web.get("/healthz", self._healthz),
            web.get("/readyz", self._readyz),
            web.get("/metrics", self._metrics),
        )

    async def _ports(self, request: web.Request) -> web.Response:
        _no_parameters(request)
        agent = self._agent
        body = await in_thread(self._executor, ports_body, agent.snapshot(), agent.history)
        return json_answer(body)

    async def _flaps(self, request: web.Request) -> web.Response:
        query = flap_query(single_values(request.query.items(), FLAP_PARAMETERS), time.time_ns())
        undurable = self._agent.snapshot().undurable
        body = await in_thread(self._executor, flaps_body, self._agent.history, query, undurable)
        return json_answer(body)

    async def _flap(self, request: web.Request) -> web.Response:
        _no_parameters(request)
        flap_id = request.match_info["id"]
        for outage in self._agent.snapshot().undurable:
            if outage.id == flap_id:
                return json_answer(encoded(flap_item(outage, FlapDetail, durable=False)))
        kept = await in_thread(self._executor, self._agent.history.flap, flap_id)
        if kept is None:
            raise ApiError("not_found", f"there is no flap {flap_id}", "id")
        return json_answer(encoded(flap_item(kept, FlapDetail)))

    async def _healthz(self, request: web.Request) -> web.Response:
        _no_parameters(request)
        answer = {"status": "ok", "node": self._agent.node, "version": __version__}
        return json_answer(encoded(answer))

    async def _readyz(self, request: web.Request) -> web.Response:
        _no_parameters(request)
        reasons = self._agent.not_ready()
        if not reasons:
            return json_answer(encoded({"status": "ready", "reasons": []}))
        error = ErrorBody("unavailable", "; ".join(reasons))
        return json_answer(encoded(ErrorAnswer(error, reasons)), STATUS["unavailable"])

    async def _metrics(self, request: web.Request) -> web.Response:
        _no_parameters(request)
        agent = self._agent
        scrape = Scrape(agent.snapshot(), agent.health, time.monotonic_ns())
        accept = ",".join(request.headers.getall(hdrs.ACCEPT, []))
        body, content_type = await in_thread(self._executor, render, scrape, accept)
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})


def _no_parameters(request: web.Request) -> None:
    single_values(request.query.items(), ())


def ports_body(snapshot: Snapshot, history: HistoryReader) -> bytes:
    """The answer of /ports; without a readable history `flaps_24h` is not known."""
    try:
        counts = history.flaps_per_port(time.time_ns() - _DAY_NS)
    except HistoryError:
        counts = None
    now_ns = time.monotonic_ns()
    items = [
        port_item(
            view,
            now_ns=now_ns,
            flaps_24h=None if counts is None else counts.get(view.port.key, 0),
            stuck_since_ns=snapshot.stuck_readers.get(view.port.device),
        )
        for view in snapshot.ports
    ]
    return encoded_list(PortList(items))


def flaps_body(history: HistoryReader, query: FlapQuery, undurable: Sequence[Outage]) -> bytes:
    """The answer of /flaps; ApiError where the cursor is none of ours.

    What the disk has not taken yet stands on top of the first page.
    """
    try:
        page = history.flaps(query)
    except HistoryError:
        raise
    except FlapdError as error:
        raise ApiError("bad_parameter", str(error), "cursor") from None
    waiting = {outage.id for outage in undurable}
    items = [flap_item(outage) for outage in page.items if outage.id not in waiting]
    if query.cursor is None:
        items[:0] = [
            flap_item(outage, durable=False)
            for outage in reversed(undurable)
            if matches(query, outage)
        ]
    return encoded_list(FlapList(items, page.next))
