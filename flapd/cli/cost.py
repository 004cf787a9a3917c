"""`flapd cost`: the price of a flap, each intermediate value shown; needs no agent."""

import argparse
from collections.abc import Sequence

import msgspec

from flapd.cli.cost_calibrations import calibrations
from flapd.cli.cost_inputs import questions
from flapd.cli.cost_text import print_derivation
from flapd.cli.output import Cell, Column, print_json, print_table
from flapd.cli.target import SocketTarget
from flapd.config import Config
from flapd.core.cost.answer import CostAnswer, cost_answer
from flapd.core.cost.calibration import Retry
from flapd.core.cost.question import Question, checkpoints_of, inputs_of


class CostList(msgspec.Struct, frozen=True):
    """The form of all lists, where several prices were asked for."""

    items: list[CostAnswer]
    next: None = None


def cost(arguments: argparse.Namespace, config: Config, agent: SocketTarget) -> int:
    """The exit status; one price in full, several as a table."""
    currency = config.cost.currency
    asked, known = list(questions(arguments, config)), calibrations(agent)
    answers = [_answer(question, config, arguments.every, known) for question in asked]
    if arguments.json:
        print_json(msgspec.json.encode(answers[0] if len(answers) == 1 else CostList(answers)))
    elif len(answers) == 1:
        print_derivation(answers[0], currency, arguments.every)
    else:
        _print_prices(answers, currency)
    return 0


def _answer(
    question: Question,
    config: Config,
    every_seconds: float | None,
    known: tuple[Retry, ...],
) -> CostAnswer:
    inputs = inputs_of(question, config.job, config.cost)
    saves = checkpoints_of(question, config.job)
    return cost_answer(inputs, config.cost.currency, every_seconds, saves, known)


_STYLES = {"transport_abort": "bold red", "watchdog": "bold red", "failover": "yellow"}


def _print_prices(answers: Sequence[CostAnswer], currency: str) -> None:
    """What is the same everywhere has no column."""
    shown = [_shown(answer, currency) for answer in answers]
    varied = {title for title in shown[0] if len({row[title].text for row in shown}) > 1}
    titles = [title for title in shown[0] if title in varied or title not in _POLICY]
    columns = [Column(title, is_number=title != "regime", is_whole=True) for title in titles]
    print_table(columns, [[row[title] for title in titles] for row in shown])


_POLICY = ("timeout", "retries", "budget", "watchdog")


def _shown(answer: CostAnswer, currency: str) -> dict[str, Cell]:
    """By the title of its column."""
    inputs, day, month = answer.inputs, answer.per_day, answer.per_month
    cells = {
        "timeout": Cell(str(inputs.ib_timeout.value)),
        "retries": Cell(str(inputs.retry_cnt.value)),
        "budget": Cell(_rounded(answer.budget_seconds, 2, " s")),
        "watchdog": Cell(f"{inputs.watchdog_seconds.value:g} s"),
        "down": Cell(f"{inputs.down_seconds.value:g} s"),
        "regime": Cell(answer.regime.replace("_", " "), _STYLES.get(answer.regime, "")),
        "lost": Cell(_rounded(answer.lost_seconds, 2, " s")),
        "GPU-h": Cell(_rounded(answer.gpu_hours, 2, "")),
        currency: Cell(_rounded(answer.cost.likely if answer.cost else None, 2, "")),
    }
    if day is not None and month is not None:
        cells["a day"] = Cell(f"{day.cost:,.2f}")
        cells["30 days"] = Cell(f"{month.cost:,.0f}")
        cells["share"] = Cell(f"{day.capacity_share:.2%}")
    return cells


def _rounded(value: float | None, digits: int, unit: str) -> str:
    return "endless" if value is None else f"{value:,.{digits}f}{unit}"
