"""BudgetApi: what a step should take, and how much of the rest links explain."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from flapd.core.cost.inputs import Inputs
from flapd.core.cost.question import Question, inputs_of
from flapd.core.cost.step import Training
from flapd.core.cost.step_fabric import Fabric, StepAnswer, step_answer
from flapd.core.incident.terms import terms_of
from flapd.model.job import Job
from flapd.model.times import SECOND_NS
from flapd.serve import route
from flapd.serve.agent import Agent
from flapd.serve.answers import encoded, in_thread, json_answer
from flapd.serve.budget_fabric import About, Period
from flapd.serve.parameter import bad, needed, number, of_jobs, span, text, whole
from flapd.serve.query import SPAN_PARAMETERS, refuse_backwards
from flapd.serve.retransmitted import retransmitted
from flapd.serve.settings import Prices

NEEDS_GPUS = "the number of GPUs of the job, or job.world_size, is needed"

InputsOf = Callable[[Sequence[Job]], Inputs]
"""What the model needs of a job besides its flaps, by what its nodes tell of it."""
See = Callable[[About, InputsOf], Fabric]
"""What is seen of the fabric in a period; may wait for a disk."""

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


class BudgetApi:
    def __init__(
        self, see: See, executor: Executor, prices: Prices, *, of_fleet: bool = False
    ) -> None:
        """`of_fleet`: it is of one job and its nodes, and not for those who may not see jobs."""
        self._see = see
        self._executor = executor
        self._prices = prices
        self._of_fleet = of_fleet

    def routes(self) -> Iterable[route.Route]:
        node = (text("node", "the name of a node"),) if self._of_fleet else ()
        yield route.Route(
            "GET",
            "/api/v1/budget",
            "Projected step time, the gap, and the fabric's part in it; of the last 24 h",
            self._tell,
            StepAnswer,
            (*node, *BUDGET_PARAMETERS),
            access="jobs" if self._of_fleet else "fabric",
        )

    async def _tell(self, asked: route.Question) -> web.Response:
        values = asked.values
        gpus = values["gpus"] or self._prices.job.world_size
        if gpus is None:
            raise bad("gpus", NEEDS_GPUS)
        training = Training(
            parameters=values["params"],
            tokens_per_step=values["tokens"],
            gpus=gpus,
            peak_flops=values["peak"],
        )
        about = _about(values, asked.sees_jobs)
        fabric = await in_thread(self._executor, self._see, about, self._inputs)
        measured = None if values["measured"] is None else values["measured"] / SECOND_NS
        return json_answer(encoded(step_answer(training, values["mfu"], measured, fabric)))

    def _inputs(self, jobs: Sequence[Job]) -> Inputs:
        """By settings and defaults where nothing is known of the job."""
        job, cost = self._prices.job, self._prices.cost
        if jobs:
            return terms_of(jobs, frozenset(), job, cost).inputs
        return inputs_of(Question(down=0.0, gpus=1), job, cost)


def _about(values: Any, sees_jobs: bool) -> About:
    now_ns = time.time_ns()
    since, until = values["since"], values["until"]
    since_ns = now_ns - _DAY_NS if since is None else since
    until_ns = now_ns if until is None else until
    refuse_backwards(since_ns, until_ns)
    return About(since_ns, min(until_ns, now_ns), values["job"], values.get("node"), sees_jobs)


def seen_by_agent(agent: Agent) -> See:
    """By the ports of this node, with what they sent again."""

    def see(about: About, inputs_of_job: InputsOf) -> Fabric:
        period = Period(agent.history, about)
        jobs = period.jobs()
        inputs = inputs_of_job(jobs)
        tick = inputs.likely().timer.tick_seconds
        resent = retransmitted(
            agent.snapshot(),
            agent.about.ring,
            about.since_ns,
            0.0 if math.isinf(tick) else tick,
        )
        return replace(period.fabric(inputs, jobs), resent=resent)

    return see
