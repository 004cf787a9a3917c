"""FlapsApi: the outage history."""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor

from aiohttp import web

from flapd.core.cost.settings import CostSettings
from flapd.model.errors import FlapdError
from flapd.model.event import Outage
from flapd.model.times import SECOND_NS, rfc3339
from flapd.serve.agent import Teller
from flapd.serve.answers import (
    encoded,
    encoded_list,
    encoded_table,
    in_thread,
    json_answer,
    with_field,
)
from flapd.serve.errors import ApiError
from flapd.serve.items import FlapDetail, FlapItem, FlapList
from flapd.serve.names import shown_names
from flapd.serve.parameter import Parameter, text
from flapd.serve.query import FLAP_PARAMETERS, SPAN_PARAMETERS, flap_query, refuse_backwards
from flapd.serve.route import Question, Route
from flapd.serve.summary_item import SummaryItem, summary_item
from flapd.serve.told import flap_item, without_jobs
from flapd.store.black_box import BlackBox
from flapd.store.database import HistoryError
from flapd.store.flap_query import FlapQuery, matches
from flapd.store.history_reader import HistoryReader
from flapd.store.incident_links import FlapLoss

MOST_PORTS = 1000
"""Of a fleet, in one summary."""
_DAY_NS = 86_400 * SECOND_NS


class FlapsApi:
    def __init__(
        self,
        agent: Teller,
        executor: Executor,
        cost: CostSettings,
        parameters: tuple[Parameter, ...] = FLAP_PARAMETERS,
        *,
        of_fleet: bool = False,
    ) -> None:
        """`of_fleet`: there are many nodes, and ports are named with theirs where that matters."""
        self._of_fleet = of_fleet
        self._agent = agent
        self._executor = executor
        self._cost = cost
        self._parameters = parameters

    def routes(self) -> Iterable[Route]:
        return (
            Route(
                "GET",
                "/api/v1/flaps",
                "Outages, newest first",
                self._flaps,
                FlapList,
                self._parameters,
            ),
            Route(
                "GET",
                "/api/v1/flaps/{id}",
                "One outage, with the samples around it",
                self._flap,
                FlapDetail,
                (text("id", "the id of an outage", "path"),),
            ),
            Route(
                "GET",
                "/api/v1/summary",
                "Outages that overlap a span, added up; of the last 24 h where none is given",
                self._summary,
                SummaryItem,
                SPAN_PARAMETERS,
            ),
        )

    async def _flaps(self, question: Question) -> web.Response:
        query = flap_query(question.values)
        undurable = undurable_outages(self._agent)
        body = await in_thread(
            self._executor, self._flaps_body, query, undurable, question.sees_jobs
        )
        return json_answer(body)

    def _flaps_body(self, query: FlapQuery, undurable: Sequence[Outage], sees_jobs: bool) -> bytes:
        history, of_fleet = self._agent.history, self._of_fleet
        return encoded_list(flap_list(history, query, undurable, sees_jobs, of_fleet=of_fleet))

    async def _flap(self, question: Question) -> web.Response:
        flap_id = question.request.match_info["id"]
        for outage in undurable_outages(self._agent):
            if outage.id == flap_id:
                return json_answer(flap_body(outage, None, question, durable=False))
        return json_answer(await in_thread(self._executor, self._kept, flap_id, question))

    def _kept(self, flap_id: str, question: Question) -> bytes:
        kept = self._agent.history.flap(flap_id)
        if kept is None:
            raise ApiError("not_found", f"there is no flap {flap_id}", "id")
        loss = self._agent.history.losses([flap_id]).get(flap_id)
        black_box = self._agent.history.black_box(flap_id)
        return flap_body(kept, black_box, question, loss=loss, of_fleet=self._of_fleet)

    async def _summary(self, question: Question) -> web.Response:
        now_ns = time.time_ns()
        since, until = question.values["since"], question.values["until"]
        span = (now_ns - _DAY_NS if since is None else since, now_ns if until is None else until)
        refuse_backwards(*span)
        body = await in_thread(self._executor, self._summary_body, span, question.sees_jobs)
        return json_answer(body)

    def _summary_body(self, span: tuple[int, int], sees_jobs: bool) -> bytes:
        return encoded(
            span_summary(self._agent.history, span, sees_jobs, self._cost, of_fleet=self._of_fleet)
        )


def span_summary(
    history: HistoryReader,
    span: tuple[int, int],
    sees_jobs: bool,
    cost: CostSettings,
    *,
    of_fleet: bool = False,
) -> SummaryItem:
    """Of a fleet ports are named with their node, and the worst are told."""
    incidents = history.incident_summary(*span, of_fleet=of_fleet) if sees_jobs else None
    told = history.fleet_summary(*span, MOST_PORTS) if of_fleet else history.summary(*span)
    return summary_item(told, incidents, cost, *span)


def undurable_outages(agent: Teller) -> list[Outage]:
    """That the disk has not taken yet."""
    return [event for event in agent.snapshot().undurable if isinstance(event, Outage)]


def flap_body(
    outage: Outage,
    black_box: BlackBox | None,
    question: Question,
    *,
    durable: bool = True,
    loss: FlapLoss | None = None,
    of_fleet: bool = False,
) -> bytes:
    """The answer of /flaps/{id}, as FlapDetail describes it."""
    has_samples = None if of_fleet else black_box is not None and bool(black_box.rows)
    item = flap_item(outage, durable=durable, black_box=has_samples, loss=loss)
    body = encoded(item if question.sees_jobs else without_jobs(item))
    data = b"null" if black_box is None else _black_box_body(black_box)
    return with_field(body, "black_box_data", data)


def _black_box_body(black_box: BlackBox) -> bytes:
    shown = shown_names(black_box.columns)
    columns = [shown[name] for name in black_box.columns]
    body = encoded_table(columns, [[rfc3339(at or 0), *rest] for at, *rest in black_box.rows])
    for name in ("pending", "incomplete"):
        body = with_field(body, name, encoded(getattr(black_box, name)))
    return body


def flap_list(
    history: HistoryReader,
    query: FlapQuery,
    undurable: Sequence[Outage],
    sees_jobs: bool,
    *,
    of_fleet: bool = False,
) -> FlapList:
    """One page of outages; ApiError where the cursor is none of ours.

    What the disk has not taken yet stands on top of the first page. Of a fleet each node has its
    own black boxes.
    """
    try:
        page = history.flaps(query)
    except HistoryError:
        raise
    except FlapdError as error:
        raise ApiError("bad_parameter", str(error), "cursor") from None
    waiting = {outage.id for outage in undurable}
    items: list[FlapItem] = [
        flap_item(
            outage,
            black_box=None if of_fleet else outage.id in page.with_black_box,
            loss=page.losses.get(outage.id),
        )
        for outage in page.items
        if outage.id not in waiting
    ]
    if query.cursor is None:
        items[:0] = [
            flap_item(outage, durable=False, black_box=False)
            for outage in reversed(undurable)
            if matches(query, outage)
        ]
    told = items if sees_jobs else [without_jobs(item) for item in items]
    return FlapList(told, page.next)
