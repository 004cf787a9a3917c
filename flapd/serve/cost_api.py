"""CostApi: the price of a flap, by the same model as `flapd cost` and this node's own timers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from aiohttp import web

from flapd.core.cost.answer import CostAnswer, cost_answer
from flapd.core.cost.calibration import Retry
from flapd.core.cost.question import Question, checkpoints_of, inputs_of
from flapd.core.cost.releases import Launcher, release
from flapd.core.cost.restart import RESTARTS
from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.cost.timer import Schedule
from flapd.model.errors import FlapdError
from flapd.model.times import SECOND_NS
from flapd.serve import route
from flapd.serve.answers import encoded, json_answer
from flapd.serve.parameter import Parameter, bad, choice, flag, needed, number, span, whole


class CostItem(CostAnswer, frozen=True):
    """A CostAnswer; of its inputs null is what has no end."""

    inputs: Any


def _version(name: str) -> Parameter:
    def parse(raw: str, _now_unix_ns: int) -> str:
        try:
            release(raw)
        except FlapdError:
            raise ValueError(raw) from None
        return raw

    pattern = r"^v?[0-9]{1,4}(\.[0-9]{1,9}){1,3}"
    schema = {"type": "string", "pattern": pattern}
    return Parameter(name, "a version such as 2.27.5", schema, parse)


COST_PARAMETERS = (
    needed(span("down")),
    whole("gpus", 1, 10_000_000),
    span("every", shortest="1s"),
    span("usable_after"),
    flag("hang"),
    whole("ib_timeout", 0, 64),
    whole("retry_cnt", 0, 7),
    choice("schedule", get_args(Schedule)),
    whole("timer_floor", 0, 31),
    number("budget_factor", 0.01, 100),
    flag("first_try_counts"),
    flag("failover"),
    number("slowdown", 0, 1),
    span("watchdog", shortest="1s"),
    span("enqueued_before"),
    span("slack"),
    flag("uncoordinated"),
    span("propagation"),
    span("restart"),
    span("checkpoint_age"),
    span("checkpoint_interval", shortest="1s"),
    span("checkpoint_cost"),
    number("price", 0, 1_000_000),
    choice("preset", tuple(RESTARTS)),
    _version("nccl"),
    _version("torch"),
    whole("error_handling", 0, 3),
    choice("launcher", get_args(Launcher)),
)
"""Named as the options of `flapd cost`, and with their bounds."""
_SPANS = (
    "down",
    "every",
    "usable_after",
    "watchdog",
    "enqueued_before",
    "slack",
    "propagation",
    "restart",
    "checkpoint_age",
    "checkpoint_interval",
    "checkpoint_cost",
)


class CostApi:
    def __init__(
        self,
        job: JobSettings,
        cost: CostSettings,
        measured: Callable[[], tuple[Retry, ...]] = tuple,
    ) -> None:
        """What is configured holds where the question says nothing, then what was `measured`."""
        self._job = job
        self._cost = cost
        self._measured = measured

    def routes(self) -> Iterable[route.Route]:
        yield route.Route(
            "GET",
            "/api/v1/cost",
            "The price of a flap of this length, with every intermediate value",
            self._tell,
            CostItem,
            COST_PARAMETERS,
        )

    async def _tell(self, asked: route.Question) -> web.Response:
        values = _in_seconds(asked.values)
        every = values.pop("every")
        question = Question(**values)
        if question.gpus is None and self._job.world_size is None:
            raise bad("gpus", "the number of GPUs that stand still, or job.world_size, is needed")
        inputs = inputs_of(question, self._job, self._cost)
        saves = checkpoints_of(question, self._job)
        found = cost_answer(inputs, self._cost.currency, every, saves, self._measured())
        return json_answer(encoded(found))


def _in_seconds(values: Mapping[str, Any]) -> dict[str, Any]:
    spans = {name: None if values[name] is None else values[name] / SECOND_NS for name in _SPANS}
    return {**values, **spans}
