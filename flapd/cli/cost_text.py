"""The derivation of a price, in the order in which a person would check it."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from flapd.cli.cost_again import print_again
from flapd.cli.output import Cell, Column, print_line, print_table
from flapd.core.cost.answer import CostAnswer
from flapd.core.cost.budget import budget_of
from flapd.core.cost.case import Case
from flapd.core.cost.estimate import estimate
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.price import HOUR_SECONDS, Price, price
from flapd.model.given import Given
from flapd.model.loss import Regime


class _Step(NamedTuple):
    formula: str
    value: str
    meaning: str


def print_derivation(answer: CostAnswer, currency: str, every_seconds: float | None) -> None:
    """One screen: what goes in, each step, how sure it is, and what it comes to over time."""
    inputs = answer.inputs
    case = inputs.likely()
    found = price(case)
    measured = _measured_by(answer)
    rows = [_input_row(*entry, measured) for entry in _shown(inputs, currency)]
    print_table(_INPUT_COLUMNS, rows)
    print()
    steps = [*_timer_steps(case, found), *_loss_steps(case, found, currency)]
    print_table(
        _STEP_COLUMNS,
        [[Cell(step.formula), Cell(step.value), Cell(step.meaning)] for step in steps],
    )
    print()
    for sentence in _how_sure(inputs, found, currency):
        print_line(sentence, indent=2)
    if every_seconds is not None:
        print()
        print_again(answer, every_seconds, currency)


_INPUT_COLUMNS = (
    Column("what goes in"),
    Column(""),
    Column("value", is_number=True),
    Column("low to high", is_number=True),
    Column("from"),
)
_STEP_COLUMNS = (Column("step"), Column("", is_number=True, is_whole=True), Column(""))


def _shown(inputs: Inputs, currency: str) -> Iterator[tuple[str, str, Given[Any], str]]:
    """Name, symbol, value and unit of what matters; the rest where it is not as usual."""
    usual = Inputs(gpus=inputs.gpus, down_seconds=inputs.down_seconds)
    for field, name, symbol, unit, is_always in _INPUTS:
        given = getattr(inputs, field)
        if is_always or given != getattr(usual, field):
            yield name, symbol, given, unit
    yield "price of a GPU-hour", "", inputs.price_per_gpu_hour, currency


_INPUTS = (
    ("gpus", "GPUs that stand still", "W", "", True),
    ("down_seconds", "link down", "d", "s", True),
    ("usable_after_seconds", "from up until usable", "a", "s", False),
    ("ib_timeout", "NCCL_IB_TIMEOUT", "t", "", True),
    ("retry_cnt", "NCCL_IB_RETRY_CNT", "r", "", True),
    ("timer_floor", "lowest timeout of the card", "", "", False),
    ("extra_tries", "first try counts", "c", "", False),
    ("budget_factor", "measured over nominal budget", "k", "", False),
    ("schedule", "retry schedule", "", "", True),
    ("hang", "silent hang", "", "", False),
    ("coordinated", "an error ends the whole job", "", "", False),
    ("failover", "NCCL fails over to another port", "", "", False),
    ("failover_slowdown", "speed lost while a port is short", "f", "", False),
    ("slack_seconds", "delay that overlap hides", "s", "s", False),
    ("watchdog_seconds", "watchdog", "T_wd", "s", True),
    ("enqueued_seconds", "collective enqueued before the flap", "e", "s", False),
    ("poll_seconds", "the watchdog looks every", "p", "s", False),
    ("propagation_seconds", "first error until teardown", "t_prop", "s", True),
    ("restart_seconds", "teardown until it trains again", "t_restart", "s", True),
    ("checkpoint_age_seconds", "work since the last checkpoint", "A", "s", True),
)


def _measured_by(answer: CostAnswer) -> str:
    """What `calibrated` stands on, in words."""
    factor = answer.inputs.budget_factor
    used = (one.source for one in answer.calibrations if one.budget_factor == factor)
    return next(used, "calibrated")


def _input_row(name: str, symbol: str, given: Given[Any], unit: str, measured: str) -> list[Cell]:
    ends = "" if given.low == given.high else f"{_plain(given.low)} to {_plain(given.high)}"
    value = f"{_plain(given.value)} {unit}".rstrip()
    return [
        Cell(name),
        Cell(symbol),
        Cell(value),
        Cell(ends),
        Cell(
            measured if given.source == "calibrated" else given.source,
            "yellow" if given.is_assumed else "",
        ),
    ]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return "for ever" if math.isinf(value) else f"{value:,.10g}"


def _timer_steps(case: Case, found: Price) -> Iterator[_Step]:
    tries = f"({case.retry_cnt} + {case.extra_tries})" if case.extra_tries else f"{case.retry_cnt}"
    factor = "" if case.budget_factor == 1 else f"{case.budget_factor:g} x "
    is_off = math.isinf(found.tick_seconds)
    timeout = max(case.ib_timeout, case.timer_floor)
    interval = "for ever: the timer is off" if is_off else f"4.096 us x 2^{timeout}"
    meaning = "one retry interval" if not factor else f"{factor}T: one retry interval"
    yield _Step(f"T = {interval}", _seconds(found.tick_seconds), meaning)
    yield _Step(f"B = {factor}{tries} x T", _seconds(found.budget_seconds), "the retry budget")
    path = "D = d + a" if case.usable_after_seconds else "D = d"
    yield _Step(path, _seconds(case.pathless_seconds), "without a path")
    is_fixed = case.schedule == "fixed"
    schedule = f"next multiple of {factor}T" if is_fixed else "next of 2, 6, 14, 30 ... ms"
    yield _Step(f"R = {schedule} from D on", _seconds(found.resume_seconds), "first retry after it")


def _loss_steps(case: Case, found: Price, currency: str) -> Iterator[_Step]:
    yield _Step(_why(case, found), found.regime, _MEANINGS[found.regime])
    if found.regime in ("transport_abort", "watchdog"):
        yield from _death_steps(case, found)
    else:
        yield _Step(_STALLS[found.regime], _seconds(found.parts.lost), "by each GPU")
    gpu_seconds = _amount(found.gpu_seconds, 3, " GPU-s")
    hours = _amount(found.gpu_seconds / HOUR_SECONDS, 4, " GPU-h")
    yield _Step(f"W x lost = {gpu_seconds}", hours, _amplified(case, found))
    cost = _amount(found.cost, 2, f" {currency}")
    yield _Step(f"x {case.price_per_gpu_hour:,.2f} {currency}", cost, "")


def _death_steps(case: Case, found: Price) -> Iterator[_Step]:
    parts = found.parts
    waited = "B" if found.regime == "transport_abort" else _patience(case)
    yield _Step(f"detect = {waited} + {case.poll_seconds:g} s", _seconds(parts.detect), "")
    downtime = parts.detect + parts.downtime
    yield _Step("downtime = detect + t_prop + t_restart", _seconds(downtime), "nothing runs")
    yield _Step("rework = A", _seconds(parts.rework), "done again")
    yield _Step("lost = downtime + rework", _seconds(parts.lost), "by each GPU")


def _amplified(case: Case, found: Price) -> str:
    path = case.pathless_seconds
    return f"{_amount(found.gpu_seconds / path, 1)} for each second without path" if path else ""


def _patience(case: Case) -> str:
    return "T_wd - e" if case.enqueued_seconds else "T_wd"


_MEANINGS = {
    "hidden": "nobody waits",
    "absorbed": "all wait, and go on",
    "transport_abort": "the transport gives up, the job dies",
    "watchdog": "all wait until the watchdog ends the job",
    "failover": "another port takes over",
}
_STALLS = {
    "hidden": "lost",
    "absorbed": "lost = R - s",
    "failover": "lost = B + 10 ms - s, then f x (D - B)",
}


def _why(case: Case, found: Price) -> str:
    """The comparison that decided."""
    if case.hang:
        return "a silent hang: nothing is retried"
    patience = _patience(case)
    if found.regime == "hidden":
        return "R <= s"
    if found.regime == "absorbed":
        return f"R <= B and R <= {patience}"
    if found.budget_seconds > case.patience_seconds:
        return f"R > {patience} and B > {patience}"
    return "R > B" if case.coordinated or case.failover else "R > B, the error stays on some ranks"


def _how_sure(inputs: Inputs, found: Price, currency: str) -> Iterator[str]:
    """What the nominal timers leave open."""
    sure = estimate(inputs)
    if not inputs.hang.value and not math.isinf(found.budget_seconds):
        yield _budget_sentence(inputs, found)
    chances = sorted(sure.regimes.items(), key=lambda one: -one[1])
    yield f"Chances: {', '.join(f'{_words(regime)} {chance:.1%}' for regime, chance in chances)}."
    lost, money = sure.lost_seconds, sure.cost
    yield (
        f"Lost by each GPU: {_short(lost.low)} to {_short(lost.high)}; "
        f"in all {_amount(money.low)} to {_amount(money.high, 2, f' {currency}')}."
    )
    if not math.isinf(found.parts.lost):
        assumed = estimate(inputs, observed=found.regime).assumed_share
        yield f"{assumed:.0%} of the loss above rests on values nobody gave: defaults, presets."
    if inputs.slack_seconds.high == 0:
        yield "No overlap is counted (--slack): what the job hides makes it less."


def _budget_sentence(inputs: Inputs, found: Price) -> str:
    budget = budget_of(inputs)
    if inputs.budget_factor.source == "calibrated":
        spread = "so this node's cards were measured to be"
    elif budget.low == 0:
        spread = "adaptive timers promise no lower end"
    else:
        spread = "a timer may take one to four times its nominal time"
    return (
        f"By the nominal timers it is {_words(found.regime)}. The real budget lies between "
        f"{_short(budget.low)} and {_short(budget.high)}: {spread}."
    )


def _words(regime: Regime) -> str:
    return regime.replace("_", " ")


def _seconds(value: float) -> str:
    return _amount(value, 6, " s")


def _short(value: float) -> str:
    return _amount(value, 2, " s")


def _amount(value: float, digits: int = 2, unit: str = "") -> str:
    return "endless" if math.isinf(value) else f"{value:,.{digits}f}{unit}"
