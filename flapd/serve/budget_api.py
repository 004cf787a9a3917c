"""BudgetApi: what a step should take, and how much of the rest this node's links explain."""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from typing import NamedTuple

from aiohttp import web
from msgspec.structs import replace

from flapd.core.cost.durations import Length, outage_length
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.question import Question, inputs_of
from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.cost.step import Training
from flapd.core.cost.step_fabric import Fabric, StepAnswer, Waited, step_answer, waited
from flapd.core.fabric.view import COUNTED_CAUSES
from flapd.model.event import Outage
from flapd.model.times import SECOND_NS
from flapd.serve import route
from flapd.serve.agent import Agent
from flapd.serve.answers import encoded, in_thread, json_answer
from flapd.serve.parameter import bad, needed, number, of_jobs, span, text, whole
from flapd.serve.query import LARGEST_LIMIT, SPAN_PARAMETERS, refuse_backwards
from flapd.serve.retransmitted import retransmitted
from flapd.store.flap_query import FlapQuery
from flapd.store.job_queries import StallQuery

MOST_FLAPS = 2000
"""The newest of the period; the answer says where there were more."""
MOST_STALLS = 10_000

NEEDS_GPUS = "the number of GPUs of the job, or job.world_size, is needed"

_DAY_NS = 86_400 * SECOND_NS

BUDGET_PARAMETERS = (
    needed(number("params", 1, 1e18)),
    needed(number("tokens", 1, 1e18)),
    whole("gpus", 1, 10_000_000),
    needed(number("peak", 1, 1e21)),
    needed(number("mfu", 0.0001, 1)),
    span("measured", shortest="1ms"),
    of_jobs(text("job", "the id of a job: what flaps and stalls took of it alone")),
    *SPAN_PARAMETERS,
)


class _About(NamedTuple):
    """What of the fabric is asked; unix times."""

    inputs: Inputs
    period: tuple[int, int]
    end_ns: int
    """Of what is known of it."""
    job: str | None
    """None: all of them."""
    sees_jobs: bool


class BudgetApi:
    def __init__(
        self, agent: Agent, executor: Executor, job: JobSettings, cost: CostSettings
    ) -> None:
        self._agent = agent
        self._executor = executor
        self._job = job
        self._cost = cost

    def routes(self) -> Iterable[route.Route]:
        yield route.Route(
            "GET",
            "/api/v1/budget",
            "Projected step time, the gap, and the fabric's part in it; of the last 24 h",
            self._tell,
            StepAnswer,
            BUDGET_PARAMETERS,
        )

    async def _tell(self, asked: route.Question) -> web.Response:
        values = asked.values
        if values["gpus"] is None and self._job.world_size is None:
            raise bad("gpus", NEEDS_GPUS)
        inputs = inputs_of(Question(down=0.0, gpus=values["gpus"]), self._job, self._cost)
        training = Training(
            parameters=values["params"],
            tokens_per_step=values["tokens"],
            gpus=inputs.gpus.value,
            peak_flops=values["peak"],
        )
        now_ns = time.time_ns()
        since, until = values["since"], values["until"]
        period = (now_ns - _DAY_NS if since is None else since, now_ns if until is None else until)
        refuse_backwards(*period)
        about = _About(inputs, period, min(period[1], now_ns), values["job"], asked.sees_jobs)
        fabric = await in_thread(self._executor, self._fabric, about)
        measured = None if values["measured"] is None else values["measured"] / SECOND_NS
        return json_answer(encoded(step_answer(training, values["mfu"], measured, fabric)))

    def _fabric(self, about: _About) -> Fabric:
        tick = about.inputs.likely().timer.tick_seconds
        since_ns = about.period[0]
        return Fabric(
            over_seconds=max(1.0, (about.end_ns - since_ns) / SECOND_NS),
            waited=self._waited(about),
            stalled_seconds=self._stalled(about) if about.sees_jobs else None,
            resent=retransmitted(
                self._agent.snapshot(),
                self._agent.about.ring,
                since_ns,
                0.0 if math.isinf(tick) else tick,
            ),
        )

    def _waited(self, about: _About) -> Waited:
        lengths: list[Length] = []
        for outage in self._outages(about):
            if len(lengths) == MOST_FLAPS:
                return replace(waited(lengths, about.inputs), more=True)
            lengths.append(_length(outage, about.end_ns))
        return waited(lengths, about.inputs)

    def _outages(self, about: _About) -> Iterator[Outage]:
        """That the fabric caused, newest first."""
        since_ns, until_ns = about.period
        query = FlapQuery(
            since_unix_ns=since_ns, until_unix_ns=until_ns, job=about.job, limit=LARGEST_LIMIT
        )
        while True:
            page = self._agent.history.flaps(query)
            for outage in page.items:
                if outage.cause in COUNTED_CAUSES and not outage.grace:
                    yield outage
            if page.next is None:
                return
            query = replace(query, cursor=page.next)

    def _stalled(self, about: _About) -> dict[str, float] | None:
        """Within the period; None where stalls of no job were ever seen."""
        since_ns, until_ns = about.period
        query = StallQuery(
            since_unix_ns=since_ns, until_unix_ns=until_ns, job=about.job, limit=MOST_STALLS
        )
        page = self._agent.history.stalls(query)
        if not page.items:
            return None
        totals: dict[str, float] = defaultdict(float)
        for stall in page.items:
            begin_ns = max(stall.begin_unix_ns, since_ns)
            end_ns = about.end_ns if stall.end_unix_ns is None else stall.end_unix_ns
            lasted_ns = max(0, min(end_ns, about.end_ns) - begin_ns)
            totals[stall.stall_class] += lasted_ns / SECOND_NS
        return dict(totals)


def _length(outage: Outage, end_ns: int) -> Length:
    if outage.status == "open":
        return Length(max(0.0, (end_ns - outage.down.latest_unix_ns) / SECOND_NS), None)
    low, high, up = outage.down_ns_min, outage.down_ns_max, outage.up
    if low is None or high is None or up is None:
        return Length(0.0, None)
    span = (
        (up.earliest_ns - outage.down.latest_ns) / SECOND_NS,
        (up.latest_ns - outage.down.earliest_ns) / SECOND_NS,
    )
    return outage_length((low / SECOND_NS, high / SECOND_NS), outage.count, span)
